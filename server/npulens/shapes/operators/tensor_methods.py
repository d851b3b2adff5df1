"""Which names are those of methods that tensors have."""

from npulens.shapes.operators.shape_operators import TRANSFERS

_NAMES = (
    "absolute acos acosh addbmm addmm addmv addr adjoint allclose angle arccos arccosh arcsin "
    "arcsinh arctan arctan2 arctanh argwhere as_strided asin asinh atanh baddbmm bincount "
    "bitwise_left_shift bitwise_not bitwise_right_shift broadcast_to cdouble cfloat chalf "
    "cholesky cholesky_inverse cholesky_solve coalesce conj conj_physical copysign corrcoef "
    "cosh cov cpu cross data_ptr deg2rad dense_dim dequantize diag diag_embed diagflat "
    "diagonal diff digamma dim dsplit element_size equal erfc exp2 fix fliplr flipud "
    "float_power frac frexp gcd geqrf ger get_device hardshrink heaviside histogram hsplit "
    "indices inner inverse is_coalesced is_complex is_contiguous is_floating_point "
    "is_inference is_nonzero is_pinned is_same_size is_set_to is_shared item kron lcm ldexp "
    "lgamma logaddexp logaddexp2 logdet lstsq lu matrix_exp matrix_power moveaxis movedim "
    "multiply mv nanquantile narrow_copy ndimension negative nelement new nextafter outer "
    "pinverse polygamma positive prelu put qr quantile rad2deg record_stream reinforce renorm "
    "resize resize_as retain_grad rot90 select sgn sinc sinh size slogdet solve sparse_dim "
    "sparse_mask split_with_sizes stft istft storage stride subtract sum_to_size svd swapdims "
    "symeig take to_dense to_sparse tolist triangular_solve type unflatten unfold unique "
    "unique_consecutive unsafe_chunk unsafe_split untyped_storage values vdot vsplit "
)
_OTHERS = frozenset(_NAMES.split())
"""Methods of tensors that are in no table here, as PyTorch 2.13 has them."""


def is_method_of_tensors(name: str) -> bool:
    """Whether tensors have a method of this name, also one that works in place."""
    plain = name.removesuffix("_")
    return name in TRANSFERS or plain in TRANSFERS or plain in _OTHERS
