"""The names of the rules on shapes that depend on data, and on waits for the device."""

BOOLEAN_MASK = "boolean-mask-index"
BRANCH = "branch-on-tensor"
DYNAMIC_OPERATOR = "dynamic-shape-operator"
GROWING_TENSOR = "growing-tensor"
HOST_READ = "host-read"
LAST_BATCH = "loader-keeps-last-batch"
MASKED_ASSIGNMENT = "masked-assignment"
OLD_SCALAR = "indexed-scalar"
PADDING = "padding-to-longest"
RANDOM_SIZE = "random-size"
SIZE_FROM_DATA = "size-from-data"

PIPELINES = frozenset({LAST_BATCH, PADDING, RANDOM_SIZE})
"""The rules on the size of batches, which the host decides."""
