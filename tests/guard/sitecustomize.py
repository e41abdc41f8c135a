"""Run by Python at its start: guards the process and writes each refused address as a line of REFUSED_ADDRESSES."""

import os

import network_guard


def _note(address: str) -> None:
    with open(os.environ["REFUSED_ADDRESSES"], "a", encoding="utf-8") as file:
        file.write(f"{address}\n")


if "REFUSED_ADDRESSES" in os.environ:
    open(os.environ["REFUSED_ADDRESSES"], "a").close()  # an empty file says that the guard stands
    network_guard.install(_note)
