"""Build the kernel beside its source: ``python setup.py build_ext --inplace``."""

import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

import rankcore

kernel = Extension(
    "margin_kernel",
    ["margin_kernel.pyx"],
    include_dirs=[rankcore.get_include()],
    # A multiplication and an addition are not to become one: results are equal on all machines.
    extra_compile_args=[] if sys.platform == "win32" else ["-ffp-contract=off"],
)
setup(name="margin-prank", ext_modules=cythonize([kernel]))
