"""Each sample once an epoch over all ranks, and the same batches whatever the number of ranks."""

# ruff: noqa: E402 (packages are looked for before they are imported)
from __future__ import annotations

import pytest
from train_support import module_needs

module_needs("numpy", "hypothesis")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from jobgen.train.data import sampling

sizes = st.integers(1, 12)


def everyone(
    samples: int, micro: int, accumulation: int, world: int, seed: int = 0
) -> list[list[sampling.Step]]:
    order = sampling.order(samples, seed, epoch=1)
    return [list(sampling.steps(order, micro, accumulation, rank, world)) for rank in range(world)]


def counted(step: sampling.Step) -> list[int]:
    return [int(i) for piece in step.pieces for i in piece.indices[: piece.real]]


@given(samples=st.integers(1, 300), micro=sizes, accumulation=st.integers(1, 4), world=sizes)
def test_each_sample_counts_once(samples: int, micro: int, accumulation: int, world: int) -> None:
    ranks = everyone(samples, micro, accumulation, world)
    assert sorted(i for steps in ranks for step in steps for i in counted(step)) == list(range(samples))


@given(samples=st.integers(1, 300), micro=sizes, accumulation=st.integers(1, 4), world=sizes)
def test_every_rank_takes_part_in_every_pass(samples: int, micro: int, accumulation: int, world: int) -> None:
    ranks = everyone(samples, micro, accumulation, world)
    assert {len(steps) for steps in ranks} == {sampling.steps_per_epoch(samples, micro, accumulation, world)}
    for together in zip(*ranks, strict=True):
        assert len({step.total for step in together}) == 1
        assert sum(len(counted(step)) for step in together) == together[0].total
        for step in together:
            assert len(step.pieces) == accumulation
            assert all(
                min(2, micro, samples) <= len(set(piece.indices)) == len(piece.indices) <= micro
                and piece.real <= len(piece.indices)
                for piece in step.pieces
            )


@given(
    samples=st.integers(1, 300),
    micro=sizes,
    accumulation=st.integers(1, 4),
    world=sizes,
    done=st.integers(0, 9),
)
def test_the_last_batch_is_dropped_and_steps_are_skipped(
    samples: int, micro: int, accumulation: int, world: int, done: int
) -> None:
    order, batch = sampling.order(samples, 0, 1), micro * accumulation * world
    for rank in range(world):
        every = list(sampling.steps(order, micro, accumulation, rank, world))
        rest = list(sampling.steps(order, micro, accumulation, rank, world, done, drop_last=True))
        full = [step for step in every if step.total == batch]
        assert len(full) == sampling.steps_per_epoch(samples, micro, accumulation, world, drop_last=True)
        assert repr(rest) == repr(full[done:])


@given(samples=st.integers(1, 300), micro=st.integers(1, 6), world=st.integers(1, 6))
def test_batches_do_not_depend_on_the_number_of_ranks(samples: int, micro: int, world: int) -> None:
    many = everyone(samples, micro, 1, world)
    one = everyone(samples, micro * world, 1, 1)[0]
    accumulated = everyone(samples, micro, world, 1)[0]
    for i, step in enumerate(one):
        assert sorted(j for steps in many for j in counted(steps[i])) == sorted(counted(step))
        assert sorted(counted(accumulated[i])) == sorted(counted(step))


def test_order_depends_on_seed_and_epoch_only() -> None:
    assert np.array_equal(sampling.order(50, 1, 2), sampling.order(50, 1, 2))
    assert not np.array_equal(sampling.order(50, 1, 2), sampling.order(50, 1, 3))
    assert not np.array_equal(sampling.order(50, 1, 2), sampling.order(50, 2, 2))


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_evaluation_repeats_nothing(world: int) -> None:
    ranks = [list(sampling.steps(np.arange(10), 2, 1, rank, world)) for rank in range(world)]
    assert sorted(i for steps in ranks for step in steps for i in counted(step)) == list(range(10))
