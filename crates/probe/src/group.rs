//! Process groups: what a node's processes, or the generator's, used together.
//!
//! A node is a root process and everything descended from it. PostgreSQL's postmaster waits for
//! its children, and the kernel then adds what they used to the postmaster's own account; so the
//! living members' own time plus what each of them has reaped loses nothing when a backend ends.
//!
//! Limits: a child whose parent died before it is adopted elsewhere and lost from the group; of
//! ended processes the context switches since the last reading are lost. The kernel tells reaped
//! time in ticks (10 ms), user and system each cut off, so a difference of two readings is exact
//! to a tick of each.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    time::Instant,
};

use os::usage::{self, ContextSwitches, ProcessIo, ProcessStat};
use record::Moment;
use spec::metrics;

use crate::{clock::Clock, pace::Pace, reading::Reading, shown::Shown};

/// Number of times that a reading is repeated when a child ended in the middle of it.
const ATTEMPTS: usize = 4;

/// CPU time, user and system, that the process `root_pid` and everything descended from it have
/// used so far, children that ended and were waited for included, in nanoseconds.
///
/// Meant for differences: over a window they are exact to a tick (10 ms) of user and one of
/// system time when backends ended in it, and to the scheduler's own account when none did.
///
/// # Errors
/// The system's error when there is no such process or no `/proc`.
pub fn cpu_time_ns(root_pid: u32) -> io::Result<u64> {
    ProcessStat::read(root_pid)?;
    let scan = scan(&[(root_pid, Extent::Tree)], Clock::from(Instant::now()))?;
    let usage = scan.usages.get(&root_pid).ok_or(io::ErrorKind::NotFound)?;
    Ok(usage.totals.cpu_ns)
}

/// Resources that one server's processes have used, reading by reading.
#[derive(Debug)]
pub struct ServerUse {
    root_pid: u32,
    group: Group,
}

/// Resources that a server's processes have used since the first reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupUsage {
    /// CPU time, user and system, in nanoseconds.
    pub cpu_ns: u64,
    /// Context switches, voluntary and not.
    pub switches: u64,
}

impl ServerUse {
    /// The use of the server whose postmaster this is.
    pub fn of(root_pid: u32) -> ServerUse {
        let group = Group { roots: vec![(root_pid, Extent::Tree)], ..Group::default() };
        ServerUse { root_pid, group }
    }

    /// Reads on. Meant for differences of two readings, as [`cpu_time_ns`] is.
    ///
    /// # Errors
    /// The system's error when there is no such process or no `/proc`.
    pub fn read(&mut self) -> io::Result<GroupUsage> {
        ProcessStat::read(self.root_pid)?;
        let Scan { at, usages, .. } = scan(&self.group.roots, Clock::from(Instant::now()))?;
        // Everything that was counted, whatever of it a second would show.
        self.group.readings(&usages, at, f64::INFINITY);
        let cpu_ns = usages.get(&self.root_pid).ok_or(io::ErrorKind::NotFound)?.totals.cpu_ns;
        let ContextSwitches { voluntary, involuntary } = self.group.switches;
        Ok(GroupUsage { cpu_ns, switches: voluntary + involuntary })
    }
}

/// Processes that a root stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The root and everything descended from it: a server.
    Tree,
    /// The root alone: the generator, which may be the ancestor of the servers.
    Alone,
}

/// All groups of a trial.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<String, Group>,
    /// Memory is far more costly than the rest, and must not make it rare.
    memory: Pace,
    usage: Pace,
    memory_denied: bool,
    /// Scans that were not whole.
    incomplete: u64,
    cores: Option<f64>,
}

impl Groups {
    /// Makes `roots` what `name` stands for from now on: a server that was started again has
    /// another postmaster. What the roots before used stays in the account.
    pub(crate) fn watch(&mut self, name: &str, roots: &[u32], extent: Extent) {
        let group = self.groups.entry(name.to_owned()).or_default();
        group.roots = roots.iter().map(|root| (*root, extent)).collect();
        group.totals.retain(|root, _| roots.contains(root));
    }

    /// Reads the resources that every group has used, if it is due. Each reading has the moment
    /// at which it was made: memory takes long to read, and says nothing about when CPU was used.
    pub(crate) fn read(&mut self, clock: Clock) -> io::Result<Vec<Taken>> {
        let mut taken = Vec::new();
        let (groups, cores) = (&mut self.groups, *self.cores.get_or_insert_with(cores));
        let scan = self.usage.when_due(clock.now(), || used(groups, clock, cores)).transpose()?;
        match scan {
            Some(Some(used)) => taken.push(used),
            Some(None) => self.incomplete += 1,
            None => {}
        }
        let groups = &self.groups;
        match self.memory.when_due(clock.now(), || memory(groups)) {
            Some(Ok(readings)) => taken.push(Taken { at: clock.now(), readings }),
            Some(Err(_)) => self.memory_denied = true,
            None => {}
        }
        Ok(taken)
    }

    /// Notes on what could not be read, for a reader of the results.
    pub(crate) fn notes(&self) -> Vec<String> {
        let denied = self.memory_denied.then(|| {
            "memory of process groups unknown: /proc/PID/smaps_rollup may not be read here"
                .to_owned()
        });
        let incomplete = (self.incomplete > 0).then(|| {
            format!(
                "CPU of process groups: readings that were left out, because processes ended while \
                 they were made: {}; the next ones count what they used",
                self.incomplete
            )
        });
        denied.into_iter().chain(incomplete).collect()
    }
}

/// Readings that were made at one moment, by group.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) at: Moment,
    pub(crate) readings: Vec<(String, Vec<Reading>)>,
}

/// Cores that processes can run on.
fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

/// None when processes ended during every attempt to read them all.
fn used(
    groups: &mut BTreeMap<String, Group>,
    clock: Clock,
    cores: f64,
) -> io::Result<Option<Taken>> {
    let roots: Vec<_> = groups.values().flat_map(|group| group.roots.clone()).collect();
    let scan = scan(&roots, clock)?;
    if !scan.is_whole {
        return Ok(None);
    }
    let of = |(name, group): (&String, &mut Group)| {
        (name.clone(), group.readings(&scan.usages, scan.at, cores))
    };
    Ok(Some(Taken { at: scan.at, readings: groups.iter_mut().map(of).collect() }))
}

fn memory(groups: &BTreeMap<String, Group>) -> io::Result<Vec<(String, Vec<Reading>)>> {
    let of = |(name, group): (&String, &Group)| {
        let reading = Reading::new(&metrics::GROUP_MEMORY_MB, "", group.memory_mib()?);
        Ok((name.clone(), vec![reading]))
    };
    groups.iter().map(of).collect()
}

/// One group's account. It only grows: a reading that fell between a child's end and its parent's
/// noticing tells too little, and the next one makes up for it.
#[derive(Debug, Default)]
struct Group {
    roots: Vec<(u32, Extent)>,
    /// Per root, what was accounted already.
    totals: HashMap<u32, Totals>,
    began: bool,
    cpu: Shown,
    switches: ContextSwitches,
    io: Option<ProcessIo>,
    members: HashMap<(u32, u64), Seen>,
}

/// Counts of a member (a pid and its start time) at the last reading. As long as it has not run
/// since, none of them has changed: of thousands of idle sessions little needs to be read.
#[derive(Clone, Copy, Debug)]
struct Seen {
    cpu_ns: u64,
    switches: Option<ContextSwitches>,
    io: Option<ProcessIo>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    started: u64,
    cpu_ns: u64,
    ticks: [u64; 2],
    io: Option<ProcessIo>,
}

impl Group {
    fn readings(&mut self, usages: &HashMap<u32, Usage>, at: Moment, cores: f64) -> Vec<Reading> {
        let mut before = std::mem::take(&mut self.members);
        for (root, _) in self.roots.clone() {
            let Some(usage) = usages.get(&root) else { continue };
            let mut totals = usage.totals;
            for (member, cpu_ns) in &usage.members {
                let key = (member.pid, member.started);
                let seen = self.look(member, *cpu_ns, before.remove(&key));
                totals.io = totals.io.into_iter().chain(seen.io).reduce(ProcessIo::plus);
                self.members.insert(key, seen);
            }
            self.account(root, totals);
        }
        self.began = true;
        let [user_s, system_s] = self.cpu.at(at, cores);
        let mut readings = vec![
            Reading::new(&metrics::GROUP_PROCESSES, "", self.members.len() as f64),
            Reading::new(&metrics::GROUP_CPU_USER_CORES, "", user_s),
            Reading::new(&metrics::GROUP_CPU_SYSTEM_CORES, "", system_s),
            Reading::new(&metrics::GROUP_CONTEXT_SWITCHES, "", self.switches.voluntary as f64),
            Reading::new(&metrics::GROUP_PREEMPTIONS, "", self.switches.involuntary as f64),
        ];
        // Without the right to look, silence; not the claim that nothing was read.
        if let Some(io) = self.io {
            readings.push(Reading::new(&metrics::GROUP_READ_BYTES, "", io.read_bytes as f64));
            readings.push(Reading::new(&metrics::GROUP_WRITE_BYTES, "", io.write_bytes as f64));
        }
        readings
    }

    fn look(&mut self, member: &ProcessStat, cpu_ns: u64, before: Option<Seen>) -> Seen {
        if let Some(before) = before.filter(|before| before.cpu_ns == cpu_ns) {
            return before;
        }
        let (switches, io) = (ContextSwitches::read(member), ProcessIo::read(member.pid));
        if let Some(now) = switches {
            let then = match before {
                Some(before) => before.switches.unwrap_or(now),
                None if self.began => ContextSwitches::default(),
                None => now,
            };
            self.switches.voluntary += now.voluntary.saturating_sub(then.voluntary);
            self.switches.involuntary += now.involuntary.saturating_sub(then.involuntary);
        }
        Seen { cpu_ns, switches, io }
    }

    fn account(&mut self, root: u32, now: Totals) {
        let before = match self.totals.get(&root) {
            Some(before) if before.started == now.started => *before,
            // A process that came later counts from its own beginning.
            _ if self.began => Totals { started: now.started, ..Totals::default() },
            _ => now,
        };
        let ticks = [0, 1].map(|mode| now.ticks[mode].saturating_sub(before.ticks[mode]) as f64);
        let all_ticks = ticks[0] + ticks[1];
        let user_share = if all_ticks > 0.0 { ticks[0] / all_ticks } else { 1.0 };
        let cpu_s = now.cpu_ns.saturating_sub(before.cpu_ns) as f64 / 1e9;
        self.cpu.count([cpu_s * user_share, cpu_s * (1.0 - user_share)]);
        if let Some(now) = now.io {
            // Where it could not be read before, it is counted from the start of the process.
            let before = before.io.unwrap_or_default();
            let io = self.io.get_or_insert_default();
            io.read_bytes += now.read_bytes.saturating_sub(before.read_bytes);
            io.write_bytes += now.write_bytes.saturating_sub(before.write_bytes);
        }
        self.totals.insert(root, now.at_least(before));
    }

    fn memory_mib(&self) -> io::Result<f64> {
        let mut kib = 0;
        for (pid, _) in self.members.keys() {
            match usage::proportional_kib(*pid) {
                Ok(own) => kib += own,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                Err(_) => {} // It ended meanwhile.
            }
        }
        Ok(kib as f64 / 1024.0)
    }
}

impl Totals {
    fn at_least(self, before: Totals) -> Totals {
        Totals {
            started: self.started,
            cpu_ns: self.cpu_ns.max(before.cpu_ns),
            ticks: [0, 1].map(|mode| self.ticks[mode].max(before.ticks[mode])),
            io: self.io.map(|io| io.at_least(before.io.unwrap_or_default())), // None was read before.
        }
    }
}

/// Resources that one root and its descendants have used since they began.
#[derive(Debug)]
struct Usage {
    totals: Totals,
    /// Each with its own CPU time, in nanoseconds.
    members: Vec<(ProcessStat, u64)>,
}

/// Readings of all roots.
#[derive(Debug)]
struct Scan {
    at: Moment,
    /// No child of a root ended meanwhile.
    is_whole: bool,
    usages: HashMap<u32, Usage>,
}

/// Reads the resources that each of `roots` has used. A root that is not there is left out.
///
/// A child that ends after its parent was read and before itself is read would be missed. The
/// parent's account tells, and the reading is repeated; under a storm of ending children the last
/// attempt stands, and is not whole.
fn scan(roots: &[(u32, Extent)], clock: Clock) -> io::Result<Scan> {
    let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    let mut attempt = 1;
    loop {
        let before: Vec<_> = roots.iter().map(|(root, _)| reaped(*root)).collect();
        let began = clock.now();
        let table = usage::all()?;
        let by_pid: HashMap<u32, ProcessStat> =
            table.iter().map(|stat| (stat.pid, *stat)).collect();
        let usages: HashMap<u32, Usage> = roots
            .iter()
            .filter_map(|(root, extent)| {
                let members = match extent {
                    Extent::Tree => tree(&table, by_pid.get(root)?),
                    Extent::Alone => vec![*by_pid.get(root)?],
                };
                Some((*root, usage(members, *extent, ns_per_tick)))
            })
            .collect();
        let at = Moment(began.0.midpoint(clock.now().0));
        let after: Vec<_> = roots.iter().map(|(root, _)| reaped(*root)).collect();
        let is_whole = before == after;
        if is_whole || attempt == ATTEMPTS {
            return Ok(Scan { at, is_whole, usages });
        }
        attempt += 1;
    }
}

fn usage(members: Vec<ProcessStat>, extent: Extent, ns_per_tick: u64) -> Usage {
    // A group without a process has used nothing.
    let started = members.first().map_or(0, |root| root.started);
    let mut totals = Totals { started, ..Totals::default() };
    let account = |member: ProcessStat| {
        let own_ns = usage::own_cpu_ns(&member, ns_per_tick);
        let reaped = if extent == Extent::Tree { member.reaped } else { [0, 0] };
        totals.cpu_ns += own_ns + (reaped[0] + reaped[1]) * ns_per_tick;
        totals.ticks[0] += member.own[0] + reaped[0];
        totals.ticks[1] += member.own[1] + reaped[1];
        (member, own_ns)
    };
    let members = members.into_iter().map(account).collect();
    Usage { totals, members }
}

fn reaped(pid: u32) -> Option<[u64; 2]> {
    Some(ProcessStat::read(pid).ok()?.reaped)
}

/// `root` and everything descended from it, `root` first.
fn tree(table: &[ProcessStat], root: &ProcessStat) -> Vec<ProcessStat> {
    let mut children: HashMap<u32, Vec<&ProcessStat>> = HashMap::new();
    for stat in table {
        children.entry(stat.parent).or_default().push(stat);
    }
    let mut found = vec![*root];
    let mut seen = HashSet::from([root.pid]);
    let mut next = 0;
    while let Some(stat) = found.get(next) {
        let pid = stat.pid;
        next += 1;
        for child in children.get(&pid).into_iter().flatten() {
            // The table was not read at one instant: a reused pid could close a circle.
            if seen.insert(child.pid) {
                found.push(**child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A shell that burns CPU in children of its own and then waits.
    fn shell(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell")
    }

    fn wait_for_output(child: &mut Child) {
        use std::io::Read;
        let mut byte = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut byte).expect("the shell says something");
    }

    const BURN: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

    #[test]
    fn children_that_ended_stay_in_their_roots_account() {
        let mut child = shell(&format!("(sh -c '{BURN}'; true); echo x; read line"));
        wait_for_output(&mut child);
        let living = cpu_time_ns(child.id()).unwrap();
        assert!(ProcessStat::read(child.id()).unwrap().reaped != [0, 0]);
        assert!(living >= 30_000_000, "{living} ns for 200,000 rounds of a shell loop");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(cpu_time_ns(child.id()).is_err());
    }

    #[test]
    fn a_group_counts_increases_and_goes_on_with_a_new_root() {
        let (mut groups, origin) = (Groups::default(), Instant::now());
        let script = format!("read line; {BURN}; echo x; read line");
        let [mut first, mut second] = [shell(&script), shell(&script)];
        let cpu = |groups: &mut Groups| -> f64 {
            let taken = loop {
                let clock = Clock::from(origin);
                if let Some(taken) = used(&mut groups.groups, clock, f64::INFINITY).unwrap() {
                    break taken;
                }
            };
            let (_, readings) = &taken.readings[0];
            let wanted = [&metrics::GROUP_CPU_USER_CORES, &metrics::GROUP_CPU_SYSTEM_CORES];
            readings.iter().filter(|r| wanted.contains(&r.metric)).map(|r| r.value).sum()
        };
        let run = |child: &mut Child| {
            use std::io::Write;
            child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
            wait_for_output(child);
        };
        groups.watch("n", &[first.id()], Extent::Tree);
        assert_eq!(cpu(&mut groups), 0.0);
        run(&mut first);
        let after_first = cpu(&mut groups);
        assert!(after_first > 0.02, "{after_first}");
        drop(first.stdin.take());
        first.wait().unwrap();
        assert_eq!(cpu(&mut groups), after_first, "a dead root keeps its account");
        run(&mut second);
        groups.watch("n", &[second.id()], Extent::Tree);
        let after_second = cpu(&mut groups);
        assert!(after_second > after_first + 0.02, "{after_second}");
        drop(second.stdin.take());
        second.wait().unwrap();
    }

    #[test]
    fn a_tree_holds_grandchildren_and_no_strangers() {
        let stat = |pid, parent| ProcessStat {
            pid,
            parent,
            own: [0, 0],
            reaped: [0, 0],
            threads: 1,
            started: 0,
        };
        let table = [stat(1, 0), stat(2, 1), stat(3, 2), stat(4, 1), stat(5, 3)];
        let pids: Vec<u32> = tree(&table, &table[1]).iter().map(|stat| stat.pid).collect();
        assert_eq!(pids, [2, 3, 5]);
    }
}
