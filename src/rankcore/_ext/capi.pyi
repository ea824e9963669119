from typing import Any

# Functions that fill the table.
ordinal: dict[str, Any]
pairs: dict[str, Any]
# The capsule that rc_import() of rankcore_capi.h opens.
table: Any
