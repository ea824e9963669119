from typing import Any

# What the table is filled from.
ordinal: dict[str, Any]
pairs: dict[str, Any]
# The capsule that rc_import() of rankcore_capi.h opens.
table: Any
