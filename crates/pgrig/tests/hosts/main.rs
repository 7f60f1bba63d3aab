//! `pgrig bench --hosts`, `pgrig run --hosts` and `pgrig check --hosts` as a user runs them: on hosts that are launched by
//! plain commands, and, as root, on hosts that are network, mount, PID, UTS and time namespaces with
//! addresses of their own, reached by nsenter, sshd, mpirun and Slurm.

mod bad_hosts;
mod campaign;
mod clocks;
mod desk;
mod faults;
mod hostile;
mod launchers;
mod limits;
mod load;
mod lost;
mod network;
mod stalls;
mod study;

use std::process::{Command, ExitCode};

use bad_hosts::{
    a_banner_is_no_trouble, a_program_can_be_pushed,
    each_cause_is_told_once_for_all_hosts_that_have_it,
};
use campaign::{
    a_full_disk_of_a_standby_is_its_hosts_fault, faults_of_hosts_are_no_violations_by_the_database,
};
use clocks::{a_clock_that_jumps_is_no_violation, clocks_that_are_not_known_well_are_no_violation};
use faults::{
    a_host_that_is_killed_or_hangs_is_noticed, hosts_killed_at_random_moments_are_noticed,
    nothing_is_left_when_the_rig_is_killed, servers_of_labs_can_be_killed_while_a_statement_runs,
};
use hostile::{a_host_that_says_nonsense_is_refused_by_name, every_wait_for_a_host_hears_signals};
use launchers::{mpirun, nsenter_and_clocks_that_are_hours_apart, slurm, sshd_on_every_host};
use limits::{
    a_host_without_cpu_is_named_as_the_limit, a_long_banner_is_cut_and_told_whole_in_json,
    a_program_that_arrives_in_part_is_refused, lines_of_hosts_add_up_to_the_sum,
    listings_of_kubectl_and_slurm_become_inventories, many_addresses_that_drop_take_as_long_as_one,
};
use load::{
    hosts_do_what_one_process_does, logs_of_hosts_come_home,
    options_that_have_no_meaning_on_hosts_are_refused,
};
use lost::{
    a_lost_host_of_clients_is_no_violation_and_the_run_goes_on,
    a_lost_host_of_clients_leaves_a_history_open, a_run_that_was_interrupted_goes_on_as_it_said,
};
use stalls::{
    a_host_that_stands_still_again_and_again_is_named, a_rig_that_stands_still_blames_no_host,
};
use study::{
    a_host_that_is_lost_ends_a_study, a_study_over_slurm, a_study_over_sshd, a_study_runs_on_hosts,
    nothing_of_a_study_is_left_when_the_rig_is_ended, what_a_study_lacks_on_hosts_is_said_first,
};

/// Says that the namespaces are made.
const INSIDE: &str = "PGRIG_TEST_INSIDE";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((word, rest)) if word == clocks::LATE_ANSWERS => return clocks::answer_late(rest),
        Some((word, rest)) if word == clocks::JUMPING_CLOCK => return clocks::jump(rest),
        _ => {}
    }
    // What the tests make on the network must neither meet the machine's nor outlive them.
    if testing::skip::is_root() && std::env::var_os(INSIDE).is_none() {
        let status = Command::new("unshare")
            .args(["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(std::env::current_exe().expect("this program's own path"))
            .args(std::env::args_os().skip(1))
            .env(INSIDE, "1")
            .status()
            .expect("unshare is installed");
        return status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8));
    }
    testing::run![
        hosts_do_what_one_process_does,
        logs_of_hosts_come_home,
        options_that_have_no_meaning_on_hosts_are_refused,
        each_cause_is_told_once_for_all_hosts_that_have_it,
        a_banner_is_no_trouble,
        a_program_can_be_pushed,
        a_program_that_arrives_in_part_is_refused,
        a_long_banner_is_cut_and_told_whole_in_json,
        listings_of_kubectl_and_slurm_become_inventories,
        many_addresses_that_drop_take_as_long_as_one,
        lines_of_hosts_add_up_to_the_sum,
        a_host_without_cpu_is_named_as_the_limit,
        a_host_that_says_nonsense_is_refused_by_name,
        every_wait_for_a_host_hears_signals,
        a_host_that_is_killed_or_hangs_is_noticed,
        hosts_killed_at_random_moments_are_noticed,
        nothing_is_left_when_the_rig_is_killed,
        servers_of_labs_can_be_killed_while_a_statement_runs,
        nsenter_and_clocks_that_are_hours_apart,
        sshd_on_every_host,
        mpirun,
        slurm,
        a_study_runs_on_hosts,
        what_a_study_lacks_on_hosts_is_said_first,
        a_host_that_is_lost_ends_a_study,
        a_lost_host_of_clients_is_no_violation_and_the_run_goes_on,
        a_lost_host_of_clients_leaves_a_history_open,
        clocks_that_are_not_known_well_are_no_violation,
        a_clock_that_jumps_is_no_violation,
        a_rig_that_stands_still_blames_no_host,
        a_host_that_stands_still_again_and_again_is_named,
        a_run_that_was_interrupted_goes_on_as_it_said,
        nothing_of_a_study_is_left_when_the_rig_is_ended,
        faults_of_hosts_are_no_violations_by_the_database,
        a_full_disk_of_a_standby_is_its_hosts_fault,
        a_study_over_sshd,
        a_study_over_slurm,
    ]
}
