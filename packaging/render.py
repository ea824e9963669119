"""Render the conda recipe for each platform: what conda-forge's linter looks at first.

Requires py-rattler-build. Compares the recipe with pyproject.toml, too.
"""

import re
import tomllib
from pathlib import Path

import rattler_build

HERE = Path(__file__).parent
PLATFORMS = ["linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64"]
# What conda-forge pins for all recipes.
PINNED = {"c_stdlib": ["stdlib"], "c_compiler": ["compiler"], "python": ["3.11.* *_cpython"]}


def main() -> None:
    """Render, compare, print the platforms."""
    recipe = rattler_build.Stage0Recipe.from_file(HERE / "conda-forge/recipe.yaml")
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    text = (HERE / "conda-forge/recipe.yaml").read_text()
    assert f'version: "{project["version"]}"' in text, "the version differs from pyproject.toml"
    run = re.search(r"^  run:\n((?:    - .*\n)+)", text, re.MULTILINE)
    wanted = {one.replace(" ", "") for one in re.findall(r"- (.*)", run[1])} - {"python"}
    assert wanted == set(project["dependencies"]), "dependencies differ from pyproject.toml"
    variants = rattler_build.VariantConfig(PINNED)
    for platform in PLATFORMS:
        config = rattler_build.RenderConfig(
            rattler_build.PlatformConfig(target_platform=platform, build_platform=platform)
        )
        rendered = recipe.render(variants, config)
        assert len(rendered) == 1, platform
        print(platform, "rendered")


if __name__ == "__main__":
    main()
