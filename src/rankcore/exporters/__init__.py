"""Exports of models to other programs: source, graphs, search engines, databases."""

from rankcore.exporters.checking import Check
from rankcore.exporters.exporting import FORMATS
from rankcore.exporters.onnx_file import register_onnx_converters

__all__ = ["FORMATS", "Check", "register_onnx_converters"]
