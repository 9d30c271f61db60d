"""Threads come from the profile; templates are told, and what is wrong is refused."""

import shutil
from pathlib import Path

import pytest

from isolitmus.jobs.projects.dbt_profile import DbtProfile, read_dbt_profile
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.model.errors import LitmusError

SHOP = Path(__file__).parents[2] / "data" / "dbt" / "shop"


def read(folder, text, target="", project="profile: shop"):
    (folder / "dbt_project.yml").write_text(f"name: x\n{project}\n", "utf-8")
    (folder / "profiles.yml").write_text(text, "utf-8")
    return read_dbt_profile(folder, target)


OUTPUTS = "shop:\n  target: dev\n  outputs:\n    dev: {type: spark, threads: 4}\n    prod: {type: databricks}\n"


def test_the_target_of_a_profile(tmp_path):
    assert read(tmp_path, OUTPUTS) == DbtProfile("dev", "spark", 4, "profiles.yml:4:33")
    assert read(tmp_path, OUTPUTS, "prod") == DbtProfile(
        "prod", "databricks", 1, "profiles.yml:5:11"
    )
    text = OUTPUTS.replace("  target: dev\n", "").replace("dev:", "default:")
    assert read(tmp_path, text).target == "default"


@pytest.mark.parametrize("project", ["name: y", "profile: \"{{ env_var('P') }}\"", "profile:"])
def test_a_project_without_a_profile(project, tmp_path):
    assert read(tmp_path, "a: 1", project=project) is None


def test_a_folder_without_profiles(tmp_path):
    assert read_dbt_profile(tmp_path) is None


def test_templates_are_told(tmp_path):
    found = read(tmp_path, OUTPUTS.replace("4", "\"{{ env_var('T') | int }}\""))
    assert found.threads == 0
    assert found.assumptions == (
        "threads of the target dev is a template, and may be any number (profiles.yml:4:33).",
    )
    found = read(tmp_path, OUTPUTS.replace("target: dev", "target: \"{{ env_var('T') }}\""))
    assert (found.target, found.threads) == ("", 0)
    assert "template" in found.assumptions[0]
    found = read(tmp_path, OUTPUTS.replace("spark", "\"{{ env_var('T') }}\""))
    assert found.adapter == ""


REFUSED = {
    "no profile": ("shopp: {}", "profiles.yml:1:1: no profile 'shop'; did you mean 'shopp'?"),
    "no target": (
        OUTPUTS.replace("target: dev", "target: deb"),
        "profiles.yml:4:5: the profile shop has no target 'deb'; did you mean 'dev'?",
    ),
    "no outputs": ("shop: {target: dev}", "profiles.yml:1:7: the profile shop has no target 'dev'"),
    "a profile that is a list": (
        "shop: [1]",
        "profiles.yml:1:7: shop is a list; expected a mapping",
    ),
    "a text": (
        OUTPUTS.replace("4", "many"),
        "profiles.yml:4:33: threads is 'many'; expected a number",
    ),
    "no threads": (
        OUTPUTS.replace("4", "0"),
        "profiles.yml:4:33: threads is 0; expected a number from 1",
    ),
    "no YAML": ("shop: [", "profiles.yml:1:8: not valid YAML"),
    "a template without quotes": (
        "shop: {{ x }}",
        "profiles.yml:1:8: a key is a list or a mapping",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_with_its_place(case, tmp_path):
    text, problem = REFUSED[case]
    with pytest.raises(LitmusError) as found:
        read(tmp_path, text)
    assert str(found.value).startswith(problem)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threads", "schedule"), [(1, ""), (4, ""), (4, "threads = 1\n"), (4, "target = 'prod'\n")]
)
def test_the_threads_decide_whether_models_overlap(threads, schedule, tmp_path):
    shutil.copytree(SHOP, tmp_path / "shop")
    (tmp_path / "shop" / "profiles.yml").write_text(OUTPUTS.replace("4", str(threads)), "utf-8")
    text = f"[schedule]\none_at_a_time = 'all'\nmaintenance = false\n{schedule}"
    (tmp_path / "shop" / "isolitmus.toml").write_text(text, "utf-8")
    found = workload(str(tmp_path / "shop"), ddl=SHOP / "hooks.sql")
    one = threads == 1 or bool(schedule)
    assert (("orders", "customers") in found.apart) == one
    assert ("each runs one model after another" in found.schedule) == one
    assert ("(threads is 1, profiles.yml:" in found.schedule) == (one and "threads" not in schedule)
    assert ("dbt-spark, but the target prod" in " ".join(found.left_out)) == ("target" in schedule)
