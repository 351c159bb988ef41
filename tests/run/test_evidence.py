"""The evidence of a sealed run, as a reader finds it: with xarray alone, and enough to conclude the same again."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray
import zarr
from examples import OPTIONS, ask, mixed_model

from daskab import KernelExpansion
from daskab.attack.attained import attained_change
from daskab.bound.contributions import CONSTRAINTS, contributions, slice_edges
from daskab.bound.scaled import Scaled
from daskab.bound.sequences import ends
from daskab.run.plan import Plan
from daskab.run.stages import Outcome
from daskab.run.store import CLOSED, FOUND, MISSING, NOT_FOUND, OPEN

MODEL = mixed_model(7, 5)


@pytest.fixture(scope="module", params=OPTIONS)
def outcome(request: pytest.FixtureRequest, short_rounds: None, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return ask(MODEL, OPTIONS[request.param], tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def data(outcome: Outcome) -> Iterator[xarray.Dataset]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xarray.open_zarr(outcome.folder / "evidence.zarr") as opened:
            yield opened.load()


def test_dimensions_are_named_and_labelled(outcome: Outcome, data: xarray.Dataset) -> None:
    slices = outcome.certificate.slices
    assert dict(data.sizes) == {
        "direction": 2,
        "dimension": MODEL.n_inputs,
        "input": MODEL.n_inputs,
        "slice": slices,
        "sequence": slices * (slices + 1) // 2,
        "constraint": 4,
        "centre": MODEL.n_centres,
        "end": 2,
        "attack": 1,
    }
    assert data["direction"].values.tolist() == [1, -1]
    assert data["dimension"].values.tolist() == list(MODEL.input_names)
    assert data["input"].values.tolist() == list(MODEL.input_names)
    assert data["constraint"].values.tolist() == ["inside", "to_upper", "from_lower", "across"] == list(CONSTRAINTS)
    assert data["end"].values.tolist() == ["x", "x_prime"]
    assert data["contributions"].dims == ("direction", "dimension", "slice", "constraint", "centre")
    assert data["bound"].dims == data["status"].dims == ("direction", "dimension", "sequence")
    assert np.array_equal(np.stack([data["first_slice"], data["last_slice"]], axis=1), ends(slices))


def test_slices_tile_the_box(data: xarray.Dataset) -> None:
    lower, upper = data["slice_lower"], data["slice_upper"]
    assert {"slice_lower", "slice_upper"} <= set(data.coords)
    assert lower.dims == ("dimension", "slice")
    assert np.array_equal(lower.isel(slice=0), MODEL.lower)
    assert upper.isel(slice=-1).values == pytest.approx(MODEL.upper, rel=1e-15)
    assert np.array_equal(lower.isel(slice=slice(1, None)), upper.isel(slice=slice(None, -1)))
    assert bool((upper > lower).all())


def test_aggregating_again_concludes_the_same(outcome: Outcome, data: xarray.Dataset) -> None:
    certificate = outcome.certificate
    upper = data["bound"].max(("direction", "sequence"))
    for at in sorted((outcome.folder / "evidence.zarr" / "enhancements").glob("[0-9]*")):
        group = zarr.open_group(at, mode="r")
        d = group.attrs["dimension"]
        upper[d] = min(upper[d], np.asarray(group["bound"]).max())
    assert np.array_equal(upper, certificate.upper_bound)
    assert np.array_equal(data["upper_bound"], certificate.upper_bound)
    assert np.array_equal(data["attained"], certificate.attained)
    assert certificate.delta is not None
    for values, required in (
        (upper, certificate.inputs_required),
        (data["attained"], certificate.inputs_required_at_best),
    ):
        ordered = np.sort(values.values)[::-1].tolist()
        enough = [n for n in range(1, MODEL.n_inputs + 1) if math.fsum(ordered[:n]) >= certificate.delta]
        assert (enough or [None])[0] == required
    closed = (data["status"] == CLOSED).all(("direction", "sequence"))
    assert int((~closed).sum()) == certificate.open_inputs
    assert certificate.complete == (certificate.open_inputs == 0)


def test_contributions_are_those_of_the_bound(outcome: Outcome, data: xarray.Dataset) -> None:
    scaled = Scaled.of(MODEL)
    for sign in (1, -1):
        for d, name in enumerate(MODEL.input_names):
            edges = slice_edges(scaled.width[d], outcome.certificate.slices)
            again = contributions(scaled.centres[:, d].copy(), scaled.amplitudes, sign, edges)
            assert np.array_equal(data["contributions"].sel(direction=sign, dimension=name), again)


def test_contributions_can_be_asked_for_by_name(data: xarray.Dataset) -> None:
    """In the positive direction and from one edge to the other, a contribution is the change of the term."""
    across = data["contributions"].sel(direction=1, dimension="in2", constraint="across").sum("slice")
    ends_only = np.tile(MODEL.centres, (2, 1, 1))
    ends_only[0, :, 2], ends_only[1, :, 2] = MODEL.lower[2], MODEL.upper[2]
    far = MODEL.replace(constant=0.0)
    for i in range(MODEL.n_centres):
        alone = far.replace(centres=MODEL.centres[i : i + 1], weights=MODEL.weights[i : i + 1])
        low, high = alone.latent(ends_only[:, i])
        assert float(across.isel(centre=i)) == pytest.approx(high - low, abs=1e-12)


def test_witnesses_attain_what_is_stored(outcome: Outcome, data: xarray.Dataset) -> None:
    certificate = outcome.certificate
    assert certificate.witnesses is not None
    for d, name in enumerate(MODEL.input_names):
        x = data["witness"].sel(dimension=name).values
        x_prime = x.copy()
        x_prime[d] = data["witness_to"].sel(dimension=name)
        assert attained_change(MODEL, x, x_prime) == float(data["attained"].sel(dimension=name))
        for mine, theirs in zip((x, x_prime), certificate.witnesses.pair(d), strict=True):
            assert np.array_equal(mine, theirs)
    assert certificate.attack is not None
    assert data["attack_pair"].sel(end="x").values.tolist() == list(certificate.attack.x)
    assert data["attack_pair"].sel(end="x_prime").values.tolist() == list(certificate.attack.x_prime)
    assert data["attack_status"].values.tolist() == [FOUND]


def test_nothing_is_missing(data: xarray.Dataset) -> None:
    for name, array in data.variables.items():
        if array.dtype.kind == "f":
            assert not np.isnan(array.values).any(), name
    assert set(np.unique(data["status"])) <= {OPEN, CLOSED}
    assert MISSING not in data["status"].values
    assert MISSING not in data["attack_status"].values


def arrays(folder: Path) -> dict[str, zarr.Array]:
    group = zarr.open_group(str(folder / "evidence.zarr"), mode="r", use_consolidated=False)
    return {name: member for name, member in group.members(max_depth=None) if isinstance(member, zarr.Array)}


def test_every_chunk_is_there_and_carries_a_checksum(outcome: Outcome) -> None:
    found = arrays(outcome.folder)
    assert {"bound", "rounds/0/closed"} <= set(found)
    adaptive = Plan.from_json((outcome.folder / "plan.json").read_text(), "plan").question.method == "adaptive"
    assert ("rounds/0/frontier/0" in found) == adaptive
    for name, array in found.items():
        metadata = json.loads((outcome.folder / "evidence.zarr" / name / "zarr.json").read_text())
        codecs = metadata["codecs"]
        assert any(c["name"] == "crc32c" or c.get("configuration", {}).get("checksum") for c in codecs), name
        assert all(c["name"] != "sharding_indexed" for c in codecs), name
        assert metadata["dimension_names"], name
        if metadata["data_type"] == "float64":
            assert metadata["fill_value"] == "NaN", name
        if metadata["data_type"] == "uint8":
            assert metadata["fill_value"] == MISSING, name
        assert array.nchunks_initialized == array.nchunks, name


def test_the_sealed_metadata_are_those_of_the_arrays(outcome: Outcome) -> None:
    gathered = json.loads((outcome.folder / "evidence.zarr" / "zarr.json").read_text())["consolidated_metadata"]
    found = arrays(outcome.folder)
    assert set(found) <= set(gathered["metadata"])
    for name, array in found.items():
        assert gathered["metadata"][name]["shape"] == list(array.shape)


def test_chunks_that_hold_nothing_but_the_fill_value_are_written_too(tmp_path: Path) -> None:
    model = KernelExpansion([[0.5, 0.5]], [1.0], 1.0, [0, 0], [1, 1], latent_low=-9.0, latent_high=9.0)
    outcome = ask(model, OPTIONS["fixed"], tmp_path)
    assert outcome.certificate.no_attack_exists
    found = arrays(outcome.folder)
    assert np.isnan(np.asarray(found["attack_pair"][...])).all()
    assert np.asarray(found["attack_status"][...]).tolist() == [NOT_FOUND]
    for name, array in found.items():
        assert array.nchunks_initialized == array.nchunks, name


def test_without_thresholds_there_is_no_attack_to_store(tmp_path: Path) -> None:
    outcome = ask(MODEL.replace(latent_low=None, latent_high=None), OPTIONS["fixed"], tmp_path)
    assert outcome.sealed
    assert np.asarray(arrays(outcome.folder)["attack_status"][...]).tolist() == [MISSING]
    assert outcome.certificate.attack is None


def test_before_a_run_is_sealed_nothing_reads_as_zero(tmp_path: Path) -> None:
    outcome = ask(MODEL, OPTIONS["fixed"], tmp_path, time_limit=1e-9)
    for name, array in arrays(outcome.folder).items():
        values = np.asarray(array[...])
        if values.dtype.kind == "f" and not name.startswith("slice_"):
            assert np.isnan(values).all(), name
