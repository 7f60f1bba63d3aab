//! What the model is asked: everything that can follow from one fault, or two.

use super::*;

const EVERYTHING: [Goal; 6] =
    [Goal::Own(0), Goal::Own(1), Goal::Own(2), Goal::Leave(0), Goal::Leave(1), Goal::Leave(2)];

/// Each world of a history with each fault of one server.
fn check_one_restored(past: &[World], goals: &[Goal]) -> Count {
    let count = one_restored(past, goals);
    assert!(count.worlds > 1000 && count.done > 1000 && count.refused > 30, "{count:?}");
    assert!(count.silent > 1000, "{count:?}");
    count
}

#[test]
fn one_server_that_is_restored_at_any_moment_to_any_other_loses_and_doubles_nothing() {
    let goals = [Goal::Own(1), Goal::Own(0), Goal::Own(2)];
    check_one_restored(&history(World::new([true; 3], 1, 1), &goals), &EVERYTHING);
}

/// Nodes come, go, and come again.
#[test]
fn a_server_that_was_no_node_or_is_none_any_more_loses_and_doubles_nothing() {
    let goals = [Goal::Own(1), Goal::Leave(0), Goal::Own(2), Goal::Leave(1), Goal::Own(0)];
    let past = history(World::new([true, false, false], 1, 1), &goals);
    let count = check_one_restored(&past, &EVERYTHING);
    // Of others another node has the number by then.
    assert!(count.taken_back > 30, "{count:?}");
}

/// Two buckets come and leave in one transaction of each server, and only together.
#[test]
fn two_buckets_in_one_batch_are_neither_lost_nor_doubled() {
    let past = history(World::new([true; 3], 2, 2), &[Goal::Own(1)]);
    check_one_restored(&past, &[Goal::Own(1), Goal::First(2)]);
}

/// Both batches are written down before the first one begins, and both are switched before old rows are dropped.
#[test]
fn two_batches_under_way_are_neither_lost_nor_doubled() {
    let past = history(World::new([true; 3], 2, 1), &[Goal::Own(1)]);
    check_one_restored(&past, &[Goal::Own(1), Goal::First(2)]);
}

/// Two batches of different sources to one target.
#[test]
fn two_sources_of_one_target_lose_and_double_nothing() {
    let mut past = history(World::new([true; 3], 2, 2), &[Goal::First(1)]);
    let now = past.pop().expect("a world");
    check_one_restored(&history(now, &[Goal::Own(2)]), &[Goal::Own(2)]);
}

/// Nodes that have left come again in another order, by each other's numbers.
#[test]
fn servers_that_say_that_they_are_the_same_node_are_refused_and_lose_nothing() {
    let goals = [Goal::Leave(1), Goal::Leave(2), Goal::Join(2), Goal::Own(2), Goal::Join(1)];
    let past = history(World::new([true; 3], 1, 1), &goals);
    let mut count = check_one_restored(&past, &[Goal::Own(0), Goal::Own(2), Goal::Join(1)]);
    let (first, last) = (&past[0], past.last().expect("a world"));
    // The proxy is as it was at the beginning, and one of both nodes, too.
    for server in [1, 2] {
        let mut world = last.clone();
        world.restore(SERVERS, first);
        world.restore(server, first);
        explore(world, &EVERYTHING, &mut Known::default(), &mut count);
    }
    assert!(count.same_number > 0, "{count:?}");
}

/// A second server is restored at any moment of the repair.
#[test]
fn two_servers_that_are_restored_lose_and_double_nothing_either() {
    let past = history(World::new([true; 3], 1, 1), &[Goal::Own(1), Goal::Own(0)]);
    let (mut known, mut count) = (Known::default(), Count::default());
    for (at, now) in past.iter().enumerate() {
        for mut world in faults(now, &past[..at]).collect::<Vec<_>>() {
            world.write();
            let (_, made) = run(&mut world.clone(), None);
            for then in std::iter::once(&world).chain(&made) {
                for world in faults(then, &past[..at]) {
                    explore(world, &EVERYTHING, &mut known, &mut count);
                }
            }
        }
    }
    assert!(count.worlds > 1000 && count.done > 1000 && count.refused > 100, "{count:?}");
}
