"""Feature maps: ``X @ W`` and ``Xᵀ U``, and nothing else.

All training sees features through two products. X stays what it is: float32 is not widened, integers are not
converted, a memory-mapped file is not loaded. Products are formed block by block in float64, because plain float32
products leave a relative error of about 2e-5 in ``Xᵀu``, which would bound the gap from below.

Other rooms add maps for their own containers with `register`.
"""

from rankhinge.features import sparse  # noqa: F401 (registers itself, as the dense map does)
from rankhinge.features.audit import Audit, HasPieces, audit, row_lengths
from rankhinge.features.dense import BLOCK_ENTRIES
from rankhinge.features.maps import ROW_BLOCK_ENTRIES, FeatureMap, feature_map, register
from rankhinge.features.weighted import WeightedColumns

__all__ = [
    "BLOCK_ENTRIES",
    "ROW_BLOCK_ENTRIES",
    "Audit",
    "FeatureMap",
    "HasPieces",
    "WeightedColumns",
    "audit",
    "feature_map",
    "register",
    "row_lengths",
]
