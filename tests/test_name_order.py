"""Names with numbers in them, as people order them."""

from gpureport.name_order import split_numbers


def test_numbers_in_names_sort_as_numbers() -> None:
    """Of any length, with leading zeros, and a name that ends before another that goes on."""
    wanted = ["gpu", "gpu:0", "gpu:2", "gpu:010", "gpu:11", f"gpu:{'9' * 5000}", "node_1/gpu:3", "node_2/gpu:0"]
    assert sorted(set(wanted), key=split_numbers) == wanted
