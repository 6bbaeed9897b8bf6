"""Each row of the tables in SECURITY.md is a promise, and at least one test checks it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest
from workspace import PROJECT, all_test_files

PAGE = PROJECT / "SECURITY.md"
TEST_FILES = {path.name: path for path in all_test_files()}
#: The tests of each row by its first cell: the file, whose name is unique, then the functions.
TESTS: Mapping[str, Mapping[str, str]] = {
    "`config.pbtxt`": {
        "test_config_text.py": (
            "test_configuration_above_one_mib_is_a_finding "
            "test_hostile_configuration_is_rejected_in_linear_time"
        ),
    },
    "`.tritonignore`": {
        "test_members.py": "test_unreadable_rules_are_an_error",
        "test_ignore_patterns.py": (
            "test_hostile_pattern_takes_linear_time test_invalid_pattern_is_a_value_error"
        ),
    },
    "`triton-models.toml`": {
        "test_described_models.py": (
            "test_malformed_file_is_an_error_with_its_line "
            "test_only_requirements_in_the_folder_are_read test_a_file_that_is_none_is_not_read"
        ),
        "test_described_environments.py": "test_included_requirements_stay_in_the_folder",
    },
    "Settings of the checks: `triton-model-check.toml`, or the table in `pyproject.toml`": {
        "test_settings.py": (
            "test_the_nearest_file_with_settings_counts test_wrong_settings_name_file_key_and_fix"
        ),
        "test_described_models.py": "test_malformed_file_is_an_error_with_its_line",
    },
    "Texts that an editor sends to `triton-model-check lsp`": {
        "test_protocol.py": (
            "test_hostile_text_does_not_end_the_server "
            "test_unsaved_text_is_checked_until_it_is_closed"
        ),
        "test_outline.py": "test_text_that_is_too_large_has_no_fields",
    },
    "Comments that ignore findings": {
        "test_comments.py": "test_a_file_full_of_comments_is_reported_a_few_times",
    },
    "Files that `check --fix` writes": {
        "test_fixing.py": (
            "test_link_out_of_the_repository_is_not_followed "
            "test_file_keeps_mode_encoding_and_line_ends "
            "test_read_only_file_stops_before_anything_is_written"
        ),
    },
    "What `check --diff` writes": {
        "test_fixing.py": "test_diff_says_what_fix_does_with_each_kind_of_link",
    },
    (
        "Files that commands write: reports (`--output-file`), recordings, configurations, plots, "
        "lock files, saved endpoints, new projects"
    ): {
        "test_written_files.py": (
            "test_only_regular_files_are_replaced test_name_of_the_draft_cannot_be_taken "
            "test_hard_link_is_not_written_through test_devices_are_written_in_place "
            "test_failure_leaves_the_old_file"
        ),
        "test_drafts.py": (
            "test_next_file_removes_the_draft_of_a_killed_command "
            "test_what_is_being_written_is_kept_whatever_the_clock_says "
            "test_only_files_and_folders_are_drafts"
        ),
        "test_fixing.py": "test_report_is_not_written_through_a_link",
        "test_recorded_requests.py": "test_a_recording_is_not_written_through_a_link",
        "test_file_writers.py": "test_no_other_module_writes_files",
    },
    "What the GitHub Action touches": {
        "test_automation.py": (
            "test_action_runs_nothing_of_the_checkout test_inputs_of_the_action_are_never_code "
            "test_jobs_and_hook_run_nothing_of_the_checkout"
        ),
        "test_project_command.py": "test_workflows_run_only_the_app_of_the_checkout",
        "test_pre_commit.py": "test_hook_runs_nothing_of_a_hostile_checkout",
    },
    "Settings of other programs in the folder where a command works": {
        "test_wheel_installation.py": "test_nothing_of_the_checkout_runs",
        "test_template_errors.py": "test_settings_of_the_current_folder_run_no_code",
        "test_environment_safety.py": (
            "test_setting_that_would_build_packages test_settings_of_indexes_are_used"
        ),
    },
    "Logs and messages that `diagnose` reads": {
        "test_diagnosis.py": (
            "test_a_long_log_is_bounded test_messages_of_all_starts_are_bounded_together"
        ),
        "test_patterns.py": "test_catalogue_of_failures_takes_linear_time",
    },
    "Model files of protobuf (ONNX)": {
        "test_protobuf_wire.py": (
            "test_work_is_limited test_large_fields_are_not_read "
            "test_larger_files_may_have_more_fields test_long_names_count_by_their_length"
        ),
        "test_onnx_file.py": "test_deeply_nested_graph_is_not_copied",
    },
    "Shape inference of ONNX models (extra `onnx`)": {
        "test_hostile_model_files.py": "test_file_of_many_empty_functions_is_not_read",
        "test_bounded_process.py": (
            "test_limits_end_a_request test_many_hostile_files_do_not_take_many_limits"
        ),
    },
    "ONNX models in ONNX Runtime itself (`--onnx-runtime`)": {
        "test_runtime.py": "test_model_that_takes_too_much_memory_has_no_verdict",
        "test_onnx_declared_weights.py": "test_large_weights_become_inputs",
    },
    "Syntax of Python models for another Python (extra `python`)": {
        "test_python_grammar.py": "test_ruff_that_fails_decides_nothing",
        "test_hostile_repositories.py": "test_large_python_source_is_not_checked",
    },
    "TorchScript archives": {
        "test_hostile_model_files.py": (
            "test_list_of_many_members_is_not_read test_code_of_all_members_together_is_bounded "
            "test_members_that_pytorch_cannot_read_are_not_read"
        ),
        "test_other_formats.py": "test_large_members_are_not_unpacked",
    },
    "Safetensors files": {
        "test_safetensors.py": (
            "test_headers_of_all_files_have_a_bound test_other_content_has_no_types"
        ),
        "test_vllm_engine.py": "test_folder_elsewhere_is_not_read",
    },
    "Files that `model new` copies, and that `from_model_file` serves": {
        "test_derived_config.py": (
            "test_data_that_is_a_link_to_another_folder_is_refused "
            "test_data_beside_a_linked_model_is_its_own"
        ),
        "test_new_model.py": (
            "test_link_out_of_a_folder_is_not_copied test_snapshot_of_hugging_face_is_copied"
        ),
    },
    "Other model files": {
        "test_hostile_model_files.py": ("test_only_the_beginning_of_a_large_xml_is_searched"),
    },
    "Python models": {
        "test_hostile_repositories.py": "test_large_python_source_is_not_checked",
    },
    (
        "JSON files: templates, recorded requests, lines of `load-test --requests`, values of "
        "`--input` and `--body`, traffic"
    ): {
        "test_load_test_of_streams.py": "test_bodies_that_cannot_be_sent",
        "test_bounded_files.py": "test_hostile_json_is_refused test_largest_values_are_read",
    },
    "All requests of `load-test --requests`": {
        "test_load_test_command.py": "test_requests_are_bounded_together",
    },
    "Cloud assemblies": {
        "test_shapes.py": "test_each_command_names_the_place",
    },
    "CSV files": {
        "test_benchmark_files.py": "test_large_file_is_refused",
    },
    "Arrays (`.npy`) of recorded requests": {
        "test_bounded_files.py": (
            "test_arrays_of_a_folder_are_bounded_together "
            "test_only_files_below_the_folder_are_read test_damaged_arrays_are_refused"
        ),
    },
    "Files and folders": {
        "test_config_text.py": "test_named_pipe_is_a_finding_and_is_not_opened",
        "test_members.py": "test_device_is_an_error test_error_names_the_path",
        "test_packing.py": "test_deep_folders_are_an_error",
    },
    "Archives (`.tar.gz`)": {
        "test_hostile_archives.py": (
            "test_bomb_is_bounded_by_the_size_of_its_archive test_content_is_bounded "
            "test_hostile_archive_raises_one_error_and_leaves_nothing"
        ),
    },
    "Archives in S3 that `adopt` reads": {
        "test_adopt_command.py": (
            "test_large_archives_stay_in_s3 test_hostile_archive_is_not_unpacked"
        ),
        "test_archives_of_a_prefix.py": ("test_archives_together_are_bounded_and_leave_nothing"),
    },
    (
        "Requirements of Python environments: `requirements.txt`, `pyproject.toml`, what uv "
        "exports of `uv.lock`, and lock files, also those in packed environments, "
        "which `local up` builds again"
    ): {
        "test_environment_safety.py": (
            "test_line_that_would_run_code test_local_package_of_uv_lock "
            "test_lines_of_a_foreign_lock_file test_pins_of_a_foreign_lock_file "
            "test_header_that_is_no_command test_uv_that_is_too_old "
            "test_extra_requires_the_same_uv"
        ),
        "test_environment_requirements.py": (
            "test_a_header_with_other_values_is_refused test_lock_file_that_cannot_be_read"
        ),
        "test_environment_contents.py": "test_contents_are_bounded",
        "test_environment_build.py": ("test_a_package_that_exists_only_as_source_is_refused"),
    },
    "Repositories of Hugging Face that `models copy` copies": {
        "test_models_copy.py": (
            "test_a_gated_repository_is_copied_without_links_and_without_the_token "
            "test_a_damaged_file_leaves_nothing test_a_file_outside_the_folder_is_refused"
        ),
    },
    "Packages that `env build` installs": {
        "test_environment_layout.py": (
            "test_row_that_leads_out_of_a_package test_record_that_cannot_be_read "
            "test_only_what_was_installed_is_moved_and_listed test_link_in_a_package"
        ),
    },
    "The cache in your home directory (`CONSTRUCTS_TRITON_CACHE_DIR`)": {
        "test_cache_contract.py": (
            "test_damaged_entry_is_made_again test_cache_of_another_user_is_not_used "
            "test_cache_that_others_may_write_is_not_used "
            "test_large_file_is_read_again_if_it_was_young"
        ),
        "test_sole_installation.py": "test_second_command_waits_and_replaces_nothing",
    },
    "Requests to the folder of `--bucket-folder`": {
        "test_local_bucket_api.py": (
            "test_nothing_outside_the_buckets_is_served test_listings_have_pages "
            "test_keys_that_no_file_can_have_are_refused test_uploads_leave_room_on_the_disk"
        ),
    },
    (
        "those that work on foreign code or data: shape inference, rehearsals, deploy-time "
        "functions, the synthesis of an adopted app, supervisors of Triton servers"
    ): {
        "test_child_processes.py": "test_no_module_starts_a_child_process",
        "test_environments.py": (
            "test_variables_that_are_not_passed test_foreign_code_gets_what_programs_need"
        ),
        "test_children.py": (
            "test_child_ends_with_its_parent test_modules_of_the_current_folder_are_not_imported "
            "test_output_is_captured"
        ),
        "test_fork_server.py": (
            "test_call_that_ends_early_or_takes_too_long_has_no_answer "
            "test_calls_do_not_get_the_callers_credentials"
        ),
        "test_bounded_process.py": "test_limits_end_a_request",
    },
    (
        "your tools: uv, cdk, docker, podman, the compiler, "
        "nvidia-smi, and the gateway of `LocalEndpoint`"
    ): {
        "test_environments.py": (
            "test_tools_work_as_the_user_set_them_up test_variables_that_are_not_passed"
        ),
        "test_children.py": (
            "test_tool_ends_with_its_parent test_time_limit_ends_a_program_and_what_it_started"
        ),
    },
    "References, conditions and functions in templates": {
        "test_template_budget.py": (
            "test_conditions_are_evaluated_once test_text_that_doubles_is_one_error "
            "test_lists_that_double_are_one_error test_chains_have_a_depth "
            "test_substitutions_are_found_in_linear_time "
            "test_wildcards_of_policies_are_matched_in_linear_time"
        ),
        "test_nested_stacks.py": "test_values_that_double_fail_the_operation",
        "test_patterns_of_aws.py": "test_pattern_that_takes_too_long_refuses_nothing",
    },
    "Nested stacks of a simulated account": {
        "test_nested_stacks.py": "test_stack_that_is_nested_in_itself_fails",
    },
    "Requests to the simulated CloudFormation, and answers of custom resources": {
        "test_foreign_requests.py": "test_malformed_request_is_an_answer",
    },
    "All files of a model, for Git LFS pointers, line ends and names": {
        "test_packed_files.py": (
            "test_folders_are_looked_into_once_and_only_inside_the_repository "
            "test_small_files_are_opened_once test_at_most_a_hundred_names_are_listed"
        ),
    },
    "Metadata of packages in packed Python environments, which `env show` prints": {
        "test_environment_contents.py": (
            "test_contents_are_bounded test_metadata_are_bounded_together"
        ),
    },
    "Names in packed Python environments, which the checks read": {
        "test_hostile_environments.py": "test_names_are_bounded",
    },
    "Responses of an endpoint, and results of asynchronous inference": {
        "test_bounded_responses.py": (
            "test_bounds_are_those_of_the_documentation test_body_may_have_the_maximum_and_no_more "
            "test_a_response_has_a_longest_duration test_memory_stays_below_the_bound"
        ),
        "test_hostile_answers.py": (
            "test_bodies test_bodies_of_errors test_bodies_without_an_end "
            "test_heads_and_errors_without_an_end test_status_lines_headers_and_lengths"
        ),
    },
    "Requests and responses of `load-test`": {
        "test_requests.py": (
            "test_response_is_not_kept test_netrc_is_not_read test_proxy_of_the_environment_is_used"
        ),
    },
    "Text in reports that other programs show": {
        "test_formats.py": "test_sarif_has_no_link_of_a_foreign_name",
        "test_regular_files.py": "test_no_cell_is_a_formula",
        "test_hostile_page.py": (
            "test_texts_of_a_model_are_only_text test_server_that_sends_anything"
        ),
    },
    "Streams of `load-test --stream`": {
        "test_requests.py": "test_stream_has_a_longest_duration",
        "test_server_sent_events.py": "test_events_have_a_maximum_size",
    },
    "JSON of a response, events of a stream": {
        "test_wire_hostile.py": (
            "test_json_has_a_maximum_size test_a_shape_of_a_million_dimensions_is_an_error"
        ),
        "test_server_sent_events.py": (
            "test_an_event_must_come test_size_of_an_event_of_many_lines_is_bounded"
        ),
    },
    "`index.json` of a multi-model endpoint": {
        "test_bounded_responses.py": "test_large_index_is_an_error",
        "test_model_index.py": "test_malformed_index_is_rejected",
    },
    "Statistics of a local server": {
        "test_local_model_statistics.py": "test_statistics_are_bounded_for_a_model_and_for_all",
    },
    "Requests to `local up`": {
        "test_local_gateway.py": "test_bodies_above_the_limit_never_reach_the_container",
        "test_local_request_checks.py": (
            "test_headers_have_the_limits_of_the_api "
            "test_bytes_that_are_not_text_in_a_header_are_a_validation_error"
        ),
        "test_local_slow_clients.py": (
            "test_slow_callers_do_not_stop_others test_caller_that_does_not_read_is_disconnected"
        ),
    },
    "Text of files, names and servers": {
        "test_terminal.py": (
            "test_control_characters_are_shown test_line_stays_one_line "
            "test_command_of_a_ci_service_is_not_sent"
        ),
        "test_hostile_output.py": (
            "test_commands_print_through_one_module test_no_control_character_is_sent"
        ),
    },
    "Every user and every process of the machine, also a container that shares its network": {
        "test_local_bucket_api.py": "test_nothing_outside_the_buckets_is_served",
    },
    "Other users": {
        "test_local_streams.py": "test_streams_need_no_port",
        "test_local_network.py": "test_another_user_cannot_connect_to_a_server",
    },
    "You, and every process that runs as you": {
        "test_local_network.py": "test_another_user_cannot_connect_to_a_server",
    },
    "Web pages in a browser of the machine": {
        "test_local_request_checks.py": (
            "test_a_foreign_host_or_origin_is_refused test_hosts_and_origins_of_loopback_are_served"
        ),
        "test_local_page_application.py": "test_foreign_pages_see_nothing",
        "test_foreign_requests.py": "test_requests_of_foreign_pages_are_refused",
    },
    "Other machines": {
        "test_local_network.py": "test_only_the_gateway_listens",
        "test_local_host_features.py": ("test_without_private_addresses_a_run_needs_permission"),
        "test_foreign_requests.py": "test_server_listens_on_loopback_only",
    },
    "Model sync": {
        "test_model_repository.py": "test_sync_has_least_privilege",
    },
    "Model files": {
        "test_compression_type.py": "test_roles_have_least_privilege",
    },
    "Scaling guard": {
        "test_scaling_guard.py": (
            "test_guard_may_do_what_scaling_needs test_guard_may_register_and_deregister"
        ),
    },
    "Update verification": {
        "test_verify_update.py": "test_function_may_only_describe_this_endpoint",
    },
}


def rows() -> Iterator[str]:
    """Yield the first cell of each row below the headings of a table."""
    tables = re.findall(
        r"^\|.*\n\| ?-.*\n((?:\|.*\n)+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    for table in tables:
        for line in table.splitlines():
            yield line.split("|")[1].strip()


@cache
def functions_of(file: str) -> frozenset[str]:
    """Return the tests that pytest collects from a file: functions at its top."""
    tree = ast.parse(TEST_FILES[file].read_text(encoding="utf-8"))
    return frozenset(
        each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_each_row_has_its_tests() -> None:
    """A promise that no test checks may stop holding without anybody seeing it."""
    found = list(rows())
    assert len(found) > 30
    assert len(set(found)) == len(found), (
        "SECURITY.md: two rows have the same first cell; rename one"
    )
    missing = [row for row in found if row not in TESTS]
    assert not missing, (
        f"SECURITY.md: rows without a test: {missing}; add each first cell to TESTS of this file, "
        "with the files and functions that fail if the row does not hold"
    )
    gone = [row for row in TESTS if row not in found]
    assert not gone, (
        f"SECURITY.md: has no row {gone}; remove it from TESTS, or write its new first cell there"
    )


@pytest.mark.parametrize("row", TESTS)
def test_each_named_test_exists(row: str) -> None:
    """A test that was renamed or deleted is missed here."""
    assert TESTS[row]
    for file, names in TESTS[row].items():
        assert file in TEST_FILES, (
            f"{row}: {file} does not exist; name the file that has the test now"
        )
        unknown = [name for name in names.split() if name not in functions_of(file)]
        assert names.split(), f"{row}: name a test of {file}"
        assert not [name for name in names.split() if not name.startswith("test_")]
        assert not unknown, f"{row}: {file} has no {unknown}; name the tests that check the row now"
