"""Logs of nvidia-smi's tables, of the text of `-q` and of its XML, and what to damage them with."""

from tests.importers.logs.nvidia_smi.forms.outputs import (
    INSTANCES,
    OLD,
    asctime,
    document,
    document_loop,
    gpu,
    loop,
    query,
    query_loop,
    table,
)

_JOB = "Epoch 1: 50%|#####     | 5/10 [00:01<00:01, 4.5it/s]\nloss 0.5\n"
SEEDS: dict[str, list[str]] = {
    "tables": [
        *(loop(20), loop(5, gpus=8), loop(10, shape=OLD), table(), _JOB + table(time=None) + _JOB + loop(3)),
        table([gpu(0, busy="N/A", mig="Enabled")]) + INSTANCES + table([gpu(1, watts="ERR!", fan="ERR!")]),
        "".join(f"{asctime(second)}\n\x1b[H\x1b[2J{table(time=None)}" for second in range(5)),
    ],
    "q_text": [query_loop(6), query([gpu(index) for index in range(8)]), _JOB + query(time=None) + _JOB + query()],
    "q_xml": [
        *(document_loop(4), document([gpu(index) for index in range(4)]), document(schema=10) * 3),
        _JOB + document(time=None) + "No devices were found\n" + document(),
    ],
}
TOKENS = (
    *(b"|", b"||", b"+---+", b" : ", b"        ", b"<", b">", b"&", b"</gpu>", b"<gpu id=", b"<?xml version=", b"]]>"),
    *(
        b"ERR!",
        b"GPU is lost",
        b"Sat Mar 14 09:00:00 2026\n",
        b"GPU 00000000:31:00.0\n",
        b"<!ENTITY a 'b'>",
        b"\x1b[5;1H",
    ),
    *(
        b"| NVIDIA-SMI 999 |\n",
        b"\n==============NVSMI LOG==============\n",
        b"<!--",
        b"<![CDATA[",
        b"99999999999999999999",
    ),
)
