"""Which names are those of methods that tensors have."""

from npulens.shapes.operators.shape_operators import TRANSFERS

_NAMES = (
    "absolute acos acosh addbmm addmm addmv addr adjoint allclose angle apply arccos arccosh "
    "arcsin arcsinh arctan arctan2 arctanh argwhere as_strided as_strided_scatter as_subclass "
    "asin asinh atanh baddbmm bincount bitwise_left_shift bitwise_not bitwise_right_shift "
    "broadcast_to cauchy ccol_indices cdouble cfloat chalf cholesky cholesky_inverse "
    "cholesky_solve coalesce col_indices conj conj_physical const_data_ptr copysign corrcoef "
    "cosh cov cpu cross crow_indices data_ptr deg2rad dense_dim dequantize diag diag_embed "
    "diagflat diagonal diagonal_scatter diff digamma dim dim_order divide dsplit eig "
    "element_size equal erfc exp2 fill_diagonal fix fliplr flipud float_power frac frexp gcd "
    "geometric geqrf ger get_device hardshrink hash_tensor heaviside histogram hsplit i0 igamma "
    "igammac index index_reduce indices inner int_repr inverse ipu is_coalesced is_complex "
    "is_conj is_contiguous is_distributed is_floating_point is_inference is_neg is_nonzero "
    "is_pinned is_same_size is_set_to is_shared is_signed istft item kron lcm ldexp lgamma "
    "log_normal logaddexp logaddexp2 logdet lstsq lu lu_solve map map2 matrix_exp matrix_power "
    "module_load moveaxis movedim msort mtia multiply mv mvlgamma nanquantile narrow_copy "
    "ndimension negative nelement new new_empty_strided nextafter nonzero_static orgqr ormqr "
    "outer pinverse polygamma positive prelu put q_per_channel_axis q_per_channel_scales "
    "q_per_channel_zero_points q_scale q_zero_point qr qscheme quantile rad2deg random "
    "record_stream register_post_accumulate_grad_hook reinforce renorm resize resize_as "
    "resize_as_sparse resolve_conj resolve_neg retain_grad rot90 row_indices select "
    "select_scatter set sgn share_memory sinc sinh size slice_inverse slice_scatter slogdet smm "
    "solve sparse_dim sparse_mask sparse_resize sparse_resize_and_clear split_with_sizes "
    "sspaddmm stft storage storage_offset storage_type stride subtract sum_to_size svd swapdims "
    "symeig take to_dense to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr "
    "to_sparse_coo to_sparse_csc to_sparse_csr tolist triangular_solve type unflatten unfold "
    "unique unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes "
    "untyped_storage values vdot vsplit xpu "
)
_OTHERS = frozenset(_NAMES.split())
"""Methods of tensors that are in no other table, as PyTorch 2.13 has them (`dir(torch.Tensor)`)."""


def is_method_of_tensors(name: str) -> bool:
    """Whether tensors have a method of this name, also one that works in place."""
    plain = name.removesuffix("_")
    return name in TRANSFERS or plain in TRANSFERS or plain in _OTHERS
