//! Tests that run with threads and, under `mpirun`, with processes as ranks, and the numbers of ranks for each.

/// Calls the macro `$with` with the tests, grouped by module.
macro_rules! shared_tests {
    ($with:ident) => {
        $with! {
            dist_graph {
                every_rank_reads_two_graphs: [1, 2, 3, 4],
                from_files_under_its_name: [1, 2, 3],
                sent_rows: [2],
                the_only_type: [1, 2, 3],
                errors_reach_every_rank: [3],
                different_calls_are_an_error: [2],
            }
            sampling {
                some_batches_are_those_of_one_machine: [1, 2, 3, 4],
                some_trees: [1, 2, 3, 4],
                batches_do_not_depend_on_the_partitioning: [3],
                another_key_is_another_batch: [2],
                invalid_requests_are_errors_on_all_ranks: [3],
            }
            loaders {
                every_rank_has_its_share_of_the_batches_of_one_machine: [1, 2, 3, 4],
                goes_on_from_any_batch_and_ends_early: [3],
                an_epoch_that_one_rank_drops_is_an_error_on_the_others: [2],
                caches_change_no_row_and_count: [3],
                rows_that_trial_batches_use_most_are_cached: [3],
                errors_of_one_rank_reach_all_ranks: [2],
                even_splits_and_links_load_as_well: [3],
                labels_and_edge_features_are_those_of_one_machine: [1, 2, 3, 4],
                a_sampler_of_a_user_is_loaded_in_order: [1, 3],
            }
            links {
                some_shares_are_the_batch: [1, 2, 3, 4],
                described_negatives_are_those_of_one_machine: [1, 2, 3],
                errors: [2],
                splits_cover_each_seed_once_with_as_many_steps_everywhere: [1, 2, 3, 4],
            }
            tensors {
                one_list: [1, 2, 3, 4],
                policies_are_those_of_the_open_graph: [2],
                names_are_handles_and_persistent_tensors_stay: [2],
                sparse_steps_are_the_formulas: [1, 2, 4],
                gradients_of_rows_are_sent_back_to_the_owner: [3],
                tensors_are_feature_columns: [1, 2, 3],
            }
            replicas {
                models_are_made_equal: [3],
                models_must_have_one_structure: [2, 3],
                ranks_share_a_seed: [1, 3],
            }
            traffic {
                a_step_sends_what_is_predicted: [1, 2, 3, 4],
            }
            times {
                loaders_with_times_are_those_of_one_machine: [1, 2, 3, 4],
                errors: [2],
            }
            trainers {
                every_trainer_reads_the_graph: [2, 4],
                trainer_ids_are_data_and_split_seeds: [2, 3, 4],
                trainers_write_one_tensor: [2, 4],
                tensors_are_masks_weights_and_times: [1, 2, 4],
            }
            minibatch {
                losses_are_those_of_one_machine: [1, 2, 3, 4],
                trainers_of_a_part_have_the_losses_of_one: [2, 4],
                sparse_adam_and_adagrad_do_not_depend_on_the_number_of_ranks: [2, 3, 4],
                a_stopped_run_resumes: [3],
            }
            training {
                equals_one_machine_on_flex: [1, 2, 4],
                equals_one_machine_on_other_backends: [1, 2, 4],
                without_halo_gradients_losses_differ: [2],
                ranks_with_nothing_to_do: [4],
            }
        }
    };
}
