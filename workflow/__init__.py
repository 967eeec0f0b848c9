"""The batch that regenerates every figure; the package `tplrepro` knows nothing of it, nor of notebooks."""

import sys

# jsonschema, which nbformat imports, would build a parser of international addresses: two seconds in every
# process. No notebook holds such addresses, and without the package jsonschema leaves them unchecked.
sys.modules.setdefault("rfc3987_syntax", None)
