"""The blocks of addresses that ``Fn::Cidr`` returns."""

from __future__ import annotations

from ipaddress import ip_network
from itertools import islice

from constructs_triton_core.errors import TemplateError

__all__ = ["address_blocks"]

_MOST_BLOCKS = 256


def address_blocks(block: str, count: int, free_bits: int) -> list[str]:
    """Return the first blocks within a block of addresses, for example ``10.0.0.0/24``.

    ``free_bits`` is the number of bits for the addresses of each block: 8 for an IPv4 block of 256
    addresses, 64 for an IPv6 block. Source: template reference, "Fn::Cidr".
    """
    network = ip_network(block, strict=False)
    prefix = network.max_prefixlen - free_bits
    if not 1 <= count <= _MOST_BLOCKS:
        raise TemplateError(
            f"Fn::Cidr: the count must be from 1 to {_MOST_BLOCKS}, got {count}; change the count"
        )
    if not network.prefixlen <= prefix <= network.max_prefixlen:
        raise TemplateError(
            f"Fn::Cidr: {block} has no blocks with {free_bits} bits for addresses; "
            "lower the cidrBits"
        )
    if count > 1 << (prefix - network.prefixlen):
        raise TemplateError(
            f"Fn::Cidr: {block} has no room for {count} blocks with {free_bits} bits for "
            "addresses; lower the count or the cidrBits"
        )
    blocks = islice(network.subnets(new_prefix=prefix), count)
    return [str(each) for each in blocks]
