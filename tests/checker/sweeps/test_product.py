"""A Boolean of all members of a product, as one number, is what the array of them is."""

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.universes.abstract_enumeration import Product


@given(st.data())
def test_a_plane_has_the_bits_of_the_array(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    every = st.lists(st.sampled_from(range(len(shape))), min_size=1, unique=True)
    axes = sorted(data.draw(every))
    size = [shape[axis] for axis in axes]
    chosen = st.lists(st.booleans(), min_size=prod(size), max_size=prod(size))
    values = np.array(data.draw(chosen)).reshape(size)
    product = Product(shape)
    found = product.bits(product.plane(values, *axes))
    for k in range(product.size):
        member = product.member(k)
        assert found[k] == values[tuple(member[axis] for axis in axes)]
