from typing import Any

c_functions: dict[str, Any]
