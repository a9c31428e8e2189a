"""Addresses and names of machines in a text."""

import pytest

from gpureport.report.runs.network_names import find_named_machines, hide_addresses, list_machines, names_machine


@pytest.mark.parametrize(
    "address",
    [
        *("fe80::1", "2001:db8::8a2e:370:7334", "2001:0db8:85a3:0000:0000:8a2e:0370:7334", "::1", "::ffff:10.1.2.3"),
        *("fe80::1%eth0", "2001:db8::/32", "[2001:db8::1]:8080", "aa:bb:cc:dd:ee:ff", "AA-BB-CC-DD-EE-FF"),
        *(
            "aabb.ccdd.eeff",
            "00:11:22:ff:fe:33:44:55",
            "0002:c903:000e:0b72",
            "10.1.2.3",
            "10.1.2.3:29500",
            "10.0.0.0/8",
        ),
        *("gpu-node-17.cluster.local", "node3.lab.example.org:29500", "ann@example.com", "http://node-3:8080/x"),
        "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0e:0b:72",
    ],
)
@pytest.mark.parametrize("form", ["{}", "to {}.", "({})", "a={}, b", "'{}'", "from {} to x"])
def test_addresses_are_gone(address: str, form: str) -> None:
    """Of both versions of IP, of network cards and of InfiniBand, with ports, zones and masks."""
    assert hide_addresses(form.format(address)) == form.format("<address>")


@pytest.mark.parametrize(
    "text",
    [
        *("09:26:53", "2026-03-14 09:26:53.589", "00000000:3B:00.0", "0000:3B:00.0", "std::vector", "::", "a: b"),
        *("torch.optim.AdamW", "train.py", "model.pt", "1.2.3", "2.1.0+cu121", "12:30", "1:2:3", "x:16", "v1.2.3.4b"),
        *("bleu.de", "bleu.fr", "acc.cn"),
        *("550.54.15", "GPU-5a3e17c0-0000-4000-8000-000000000000", "sdpa::flash", "data.tar.gz", "0.9, 0.999"),
    ],
)
def test_what_is_no_address_stays(text: str) -> None:
    """Times, versions, modules, files and GPUs."""
    assert hide_addresses(text) == text


@pytest.mark.parametrize("key", ["MASTER_ADDR", "rdzv.endpoint", "SLURM_JOB_NODELIST", "node_list", "hosts"])
def test_params_of_machines(key: str) -> None:
    """By their names; a number of machines is none."""
    assert names_machine(key, "gpu-node-3:29500")
    assert not names_machine(key, "4")


def test_other_params() -> None:
    """Words of settings that resemble them."""
    for key, value in (("num_nodes", "4"), ("node_rank", "gpu"), ("address_space", "x"), ("serverless", "x")):
        assert not names_machine(key, value)


def test_lists_of_machines() -> None:
    """Ranges are expanded; a port and a scheme are no part of a name."""
    assert {"node01", "node02", "login"} <= set(list_machines("node[01-02],login"))
    assert list(list_machines("tcp://gpu-3.example.org:8786")) == ["gpu-3.example.org"]


def test_machines_of_a_command_line() -> None:
    """Behind an equals sign, or as the value of an option; a blank alone makes no name of a word."""
    assert set(find_named_machines("run --host gpu-3 rdzv_endpoint=gpu-4:29500")) == {"gpu-3", "gpu-4"}
    assert list(find_named_machines("host memory is full, machine learning")) == []
