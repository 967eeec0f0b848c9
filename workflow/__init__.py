"""The batch that regenerates every figure; the package `tplrepro` does not depend on it or on
notebooks."""

import sys

# jsonschema, which nbformat imports, would build a parser of international addresses: two seconds
# in every process. No notebook holds such addresses, and without the package jsonschema leaves them
# unchecked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
