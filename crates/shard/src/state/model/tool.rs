//! The program at work in the model: its commits one by one, each of which may be its last.

use super::*;

/// The end of a run of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    Refused,
    /// A server does not answer.
    Silent,
}

/// A tool, and the world after each of its commits.
struct Tool<'w> {
    world: &'w mut World,
    seen: Vec<World>,
    /// Questions and commits until now, which are its clock.
    time: usize,
    silence: Option<Silence>,
}

/// A server that does not answer, from one moment to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub(super) server: usize,
    pub(super) from: usize,
    pub(super) until: usize,
}

/// Runs the tool to its end; the world after each commit is what it leaves if it is killed then.
pub(super) fn run(world: &mut World, goal: Option<Goal>) -> (Ending, Vec<World>) {
    let (ending, seen, _) = run_with(world, goal, None);
    (ending, seen)
}

/// The same while a server is silent, and the time that the run has taken.
pub(super) fn run_with(
    world: &mut World,
    goal: Option<Goal>,
    silence: Option<Silence>,
) -> (Ending, Vec<World>, usize) {
    let mut tool = Tool { world, seen: Vec::new(), time: 0, silence };
    let ending = tool.run(goal).err().unwrap_or(Ending::Done);
    (ending, tool.seen, tool.time)
}

impl World {
    /// True if the program refuses what is asked for: a server that says that it is another node cannot join.
    pub(super) fn is_refused(&self, goal: Goal) -> bool {
        let (Goal::Own(at) | Goal::First(at) | Goal::Join(at)) = goal else { return false };
        let says = self.servers[at].says;
        self.number_of(at).is_none() && says.is_some_and(|says| self.proxy.list.contains_key(&says))
    }

    /// What a goal asks for, in batches.
    fn plan(&self, goal: Goal) -> Vec<Move> {
        let (to, of) = match goal {
            Goal::Own(to) => (to, self.buckets()),
            Goal::First(to) => (to, 0..1),
            Goal::Join(_) | Goal::Leave(_) => return Vec::new(),
        };
        let to = self.number_of(to).expect("it is in the list by now");
        let mut by_source: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for bucket in of.filter(|bucket| self.proxy.owners[*bucket].0 != to) {
            by_source.entry(self.proxy.owners[bucket].0).or_default().push(bucket);
        }
        let sources = by_source.into_iter();
        let batches = sources.flat_map(|(from, buckets)| {
            let one = |buckets: &[usize]| {
                let (buckets, step) = (buckets.to_vec(), BatchStep::Planned);
                Move { from, to, buckets, step, version: None }
            };
            buckets.chunks(self.batch_max).map(one).collect::<Vec<_>>()
        });
        batches.collect()
    }

    fn is_linked(&self, index: usize, one: &Move) -> bool {
        let slot = self.servers[self.server_of(one.from)].slots[index];
        let known =
            slot.is_some() && slot == self.servers[self.server_of(one.to)].subscriptions[index];
        known && !slot.is_some_and(|slot| self.broken.contains(&slot))
    }

    fn is_copied(&self, one: &Move) -> bool {
        let target = &self.servers[self.server_of(one.to)];
        one.buckets.iter().all(|bucket| target.held[*bucket].state == Some(BucketState::Arriving))
    }
}

impl Tool<'_> {
    /// As `moves::run`: ends what was begun and does what is asked for.
    fn run(&mut self, goal: Option<Goal>) -> Result<(), Ending> {
        if let Some(Goal::Own(at) | Goal::First(at) | Goal::Join(at)) = goal
            && self.world.is_forgotten(at)
        {
            let number = self.world.servers[at].says.expect("it says that it is a node");
            self.list(at, number)?;
        }
        let mut is_swept = false;
        for _ in 0..STEPS_MAX {
            let census = self.census();
            // As `census::census`: two servers are the same node.
            if census.same_number().is_some() {
                return Err(Ending::Refused);
            }
            match census.decide() {
                RecoveryDecision::Wait { node } => {
                    let at = self.world.server_of(node);
                    assert!(self.is_silent(at), "node {node} answers: {:?}", self.world);
                    return Err(Ending::Silent);
                }
                RecoveryDecision::Refuse { buckets } => {
                    assert!(!buckets.is_empty());
                    assert_eq!(census.out_of_step(), buckets, "status is silent: {:?}", self.world);
                    return Err(Ending::Refused);
                }
                RecoveryDecision::Repair(repair) => self.repair(&repair)?,
                RecoveryDecision::InStep if !is_swept => {
                    is_swept = true;
                    self.sweep()?;
                }
                RecoveryDecision::InStep => {
                    if self.go_on(&census, goal)? {
                        self.sweep()?;
                        self.world.check_done();
                        return Ok(());
                    }
                }
            }
        }
        panic!("it goes on for ever: {:?}", self.world);
    }

    /// The next step of a batch, or the next batches; true if there is nothing to do any more.
    fn go_on(&mut self, census: &ClusterState, goal: Option<Goal>) -> Result<bool, Ending> {
        let batches = self.world.proxy.batches.clone();
        let under_way =
            || (0..).zip(&batches).filter_map(|(index, one)| Some((index, one.as_ref()?)));
        if let Some((index, one)) = under_way().find(|(_, one)| one.step != BatchStep::Switched) {
            return self.step(census, index, one).map(|()| false);
        }
        if let Some((index, one)) = under_way().next() {
            return self.tidy(index, one).map(|()| false);
        }
        match goal {
            None => Ok(true),
            Some(Goal::Leave(at)) => match self.world.number_of(at) {
                Some(number) if self.world.proxy.owners.iter().all(|owner| owner.0 != number) => {
                    self.depart(number).map(|()| false)
                }
                _ => Ok(true),
            },
            Some(Goal::Own(at) | Goal::First(at) | Goal::Join(at))
                if self.world.number_of(at).is_none() =>
            {
                self.add(at).map(|()| false)
            }
            Some(goal) => {
                let plan = self.world.plan(goal);
                let is_done = plan.is_empty();
                for (index, one) in plan.into_iter().enumerate() {
                    self.commit(|world| world.proxy.batches[index] = Some(one))?;
                }
                Ok(is_done)
            }
        }
    }

    fn is_silent(&self, at: usize) -> bool {
        let is_now = |one: &Silence| (one.from..one.until).contains(&self.time);
        self.silence.filter(is_now).is_some_and(|one| one.server == at)
    }

    fn census(&mut self) -> ClusterState {
        self.time += 1;
        let silent = (0..SERVERS).find(|at| self.is_silent(*at));
        self.world.census(silent)
    }

    fn ask(&mut self, at: usize) -> Result<(), Ending> {
        self.time += 1;
        if self.is_silent(at) { Err(Ending::Silent) } else { Ok(()) }
    }

    fn commit_on(&mut self, at: usize, change: impl FnOnce(&mut World)) -> Result<(), Ending> {
        self.ask(at)?;
        self.commit(change)
    }

    fn commit(&mut self, change: impl FnOnce(&mut World)) -> Result<(), Ending> {
        change(self.world);
        self.world.check();
        // Clients go on.
        self.world.write();
        self.seen.push(self.world.clone());
        Ok(())
    }

    /// As `deploy::add`.
    fn add(&mut self, at: usize) -> Result<(), Ending> {
        let Proxy { version, list, .. } = &self.world.proxy;
        let says = self.world.servers[at].says;
        if says.is_some_and(|says| list.contains_key(&says)) {
            return Err(Ending::Refused);
        }
        let number = (0..).find(|number| !list.contains_key(number)).expect("one is free");
        let version = *version;
        self.commit_on(at, |world| {
            (world.servers[at].says, world.servers[at].version) = (Some(number), version);
        })?;
        self.list(at, number)
    }

    /// As `deploy::list_node`.
    fn list(&mut self, at: usize, number: i32) -> Result<(), Ending> {
        self.commit(|world| {
            world.proxy.list.insert(number, at);
            world.proxy.is_former[at] = false;
        })
    }

    /// As `deploy::depart`: what the node has of replication stays.
    fn depart(&mut self, number: i32) -> Result<(), Ending> {
        let at = self.world.server_of(number);
        self.commit_on(at, |world| {
            let server = &mut world.servers[at];
            (server.says, server.version) = (None, 0);
            server.held.iter_mut().for_each(|held| *held = Held::default());
        })?;
        self.commit(|world| {
            world.proxy.list.remove(&number);
            world.proxy.is_former[at] = true;
        })
    }

    /// As `moves::repair::end_stray_replication`.
    fn sweep(&mut self) -> Result<(), Ending> {
        for at in 0..SERVERS {
            let number = self.world.number_of(at);
            if number.is_some() {
                self.ask(at)?;
            } else if !self.world.proxy.is_former[at] || self.is_silent(at) {
                continue;
            }
            for index in 0..BATCHES {
                let batch = self.world.proxy.batches[index].clone();
                // A server that has left may be a node under another address.
                let is_used = |end: fn(&Move) -> i32| {
                    batch.as_ref().is_some_and(|one| number.is_none_or(|number| end(one) == number))
                };
                if self.world.servers[at].subscriptions[index].is_some() && !is_used(|one| one.to) {
                    self.commit_on(at, |world| world.servers[at].subscriptions[index] = None)?;
                }
                if self.world.servers[at].slots[index].is_some() && !is_used(|one| one.from) {
                    self.commit_on(at, |world| world.servers[at].slots[index] = None)?;
                }
            }
        }
        Ok(())
    }

    /// As `moves::repair`: the nodes, the proxy, the copies.
    fn repair(&mut self, repair: &Repair) -> Result<(), Ending> {
        for number in &repair.strangers {
            let at = self.world.server_of(*number);
            self.commit_on(at, |world| {
                (world.servers[at].says, world.servers[at].version) = (Some(*number), 0);
            })?;
        }
        for number in &repair.renumbered {
            let at = self.world.server_of(*number);
            self.commit_on(at, |world| world.servers[at].says = Some(*number))?;
        }
        if !repair.strangers.is_empty() || !repair.renumbered.is_empty() {
            return Ok(());
        }
        let version = repair.version;
        for number in &repair.nodes {
            let at = self.world.server_of(*number);
            self.commit_on(at, |world| {
                let server = &mut world.servers[at];
                server.version = version;
                for ((bucket, held), owner) in (0..).zip(&mut server.held).zip(&repair.owners) {
                    let is_own = owner.0 == *number;
                    held.state = match held.state {
                        Some(BucketState::Gone) if is_own => {
                            (held.since, held.target) = (version, None);
                            Some(BucketState::Owned)
                        }
                        Some(BucketState::Fenced) if is_own && !repair.fenced.contains(&bucket) => {
                            Some(BucketState::Owned)
                        }
                        Some(state) if state.serves() && !is_own => Some(BucketState::Gone),
                        state => state,
                    };
                    assert_eq!(held.serves(), is_own, "a false certificate");
                }
            })?;
        }
        self.commit(|world| {
            let proxy = &mut world.proxy;
            (proxy.owners, proxy.version) = (repair.owners.clone(), version);
            for (number, step) in &repair.steps {
                let batch = &mut proxy.batches[*number as usize - 1];
                match (step, batch.as_mut()) {
                    (Some(step), Some(one)) => one.step = *step,
                    _ => *batch = None,
                }
            }
        })?;
        for (number, buckets) in &repair.copies {
            for bucket in buckets {
                self.drop_copy(self.world.server_of(*number), *bucket as usize)?;
            }
        }
        Ok(())
    }

    /// A copy that was served must hold nothing that the owner has not.
    fn drop_copy(&mut self, at: usize, bucket: usize) -> Result<(), Ending> {
        self.commit_on(at, |world| {
            let held = &world.servers[at].held[bucket];
            let only = held.rows & !world.owner(bucket).rows & world.kept[bucket];
            let was_served = held.state == Some(BucketState::Gone);
            assert!(!was_served || only == 0, "rows {only:b} are dropped: {world:?}");
            assert!(!held.serves(), "{world:?}");
            world.servers[at].held[bucket] = Held::default();
        })
    }

    /// As `moves::batch::advance`.
    fn step(&mut self, census: &ClusterState, index: usize, one: &Move) -> Result<(), Ending> {
        match one.step {
            BatchStep::Planned => self.prepare(index, one),
            BatchStep::Copying | BatchStep::Fencing if !self.world.is_copied(one) => {
                self.begin_anew(index, one)
            }
            BatchStep::Copying if !self.world.is_linked(index, one) => self.begin_anew(index, one),
            BatchStep::Copying => self.set_step(index, BatchStep::Fencing, None),
            BatchStep::Fencing => self.fence(census.newest(), index, one),
            BatchStep::Switching => self.complete(index, one, one.version.unwrap()),
            BatchStep::Switched => unreachable!("it is tidied"),
        }
    }

    fn prepare(&mut self, index: usize, one: &Move) -> Result<(), Ending> {
        let (from, to) = (self.world.server_of(one.from), self.world.server_of(one.to));
        for bucket in &one.buckets {
            if self.world.servers[to].held[*bucket].state.is_none() {
                let state = Some(BucketState::Arriving);
                self.commit_on(to, |world| world.servers[to].held[*bucket].state = state)?;
            }
        }
        self.world.links += 1;
        let link = Some(self.world.links);
        self.commit_on(from, |world| world.servers[from].slots[index] = link)?;
        self.ask(from)?;
        self.commit_on(to, |world| {
            world.apply(from, to, one);
            world.servers[to].subscriptions[index] = link;
        })?;
        self.set_step(index, BatchStep::Copying, None)
    }

    fn fence(&mut self, newest: i64, index: usize, one: &Move) -> Result<(), Ending> {
        for at in self.world.proxy.list.values().copied().collect::<Vec<_>>() {
            self.ask(at)?;
        }
        match self.fenced(index, one) {
            Ok(true) => {}
            Ok(false) => {
                self.lift(index, one)?;
                return self.begin_anew(index, one);
            }
            Err(ending) => {
                // Where the source itself is silent its fence stays up.
                let _ = self.lift(index, one);
                return Err(ending);
            }
        }
        let version = newest.max(self.world.proxy.version) + 1;
        self.set_step(index, BatchStep::Switching, Some(version))?;
        let (from, to) = (self.world.server_of(one.from), self.world.server_of(one.to));
        self.commit_on(from, |world| {
            let server = &mut world.servers[from];
            server.version = version;
            for bucket in &one.buckets {
                let held = &mut server.held[*bucket];
                (held.state, held.since) = (Some(BucketState::Gone), version);
                held.target = Some(one.to);
            }
        })?;
        self.commit_on(to, |world| {
            let server = &mut world.servers[to];
            server.version = version;
            for bucket in &one.buckets {
                let held = &mut server.held[*bucket];
                assert_eq!(held.state, Some(BucketState::Arriving));
                (held.state, held.since) = (Some(BucketState::Owned), version);
            }
        })?;
        self.complete(index, one, version)
    }

    /// Nothing writes, and what was written arrives; true if both sides are equal.
    fn fenced(&mut self, index: usize, one: &Move) -> Result<bool, Ending> {
        let (from, to) = (self.world.server_of(one.from), self.world.server_of(one.to));
        self.commit_on(from, |world| {
            for bucket in &one.buckets {
                world.servers[from].held[*bucket].state = Some(BucketState::Fenced);
            }
        })?;
        self.ask(from)?;
        if self.world.is_linked(index, one) {
            self.commit_on(to, |world| world.apply(from, to, one))?;
        }
        self.ask(from)?;
        self.ask(to)?;
        let servers = &self.world.servers;
        let rows = |at: usize, bucket: &usize| servers[at].held[*bucket].rows;
        let is_equal = one.buckets.iter().all(|bucket| rows(from, bucket) == rows(to, bucket));
        Ok(is_equal && self.world.is_copied(one))
    }

    fn lift(&mut self, index: usize, one: &Move) -> Result<(), Ending> {
        let from = self.world.server_of(one.from);
        self.commit_on(from, |world| {
            for bucket in &one.buckets {
                let held = &mut world.servers[from].held[*bucket];
                if held.state == Some(BucketState::Fenced) {
                    held.state = Some(BucketState::Owned);
                }
            }
        })?;
        self.set_step(index, BatchStep::Copying, None)
    }

    fn complete(&mut self, index: usize, one: &Move, version: i64) -> Result<(), Ending> {
        let is_told = |number: &i32| *number != one.from && *number != one.to;
        for other in self.world.proxy.list.keys().copied().filter(is_told).collect::<Vec<_>>() {
            let at = self.world.server_of(other);
            // As `deploy::change_buckets`: a node that serves other buckets than the mapping says gets no version.
            let owners = self.world.proxy.owners.iter();
            let mut pairs = self.world.servers[at].held.iter().zip(owners);
            if pairs.any(|(held, owner)| held.serves() != (owner.0 == other)) {
                return Err(Ending::Refused);
            }
            self.commit_on(at, |world| world.servers[at].version = version)?;
        }
        self.commit(|world| {
            world.proxy.version = version;
            for bucket in &one.buckets {
                world.proxy.owners[*bucket] = (one.to, version);
            }
            let (step, version) = (BatchStep::Switched, Some(version));
            world.proxy.batches[index] = Some(Move { step, version, ..one.clone() });
        })?;
        self.end_replication(index, one)
    }

    /// As `moves::batch::drop_old_rows`.
    fn tidy(&mut self, index: usize, one: &Move) -> Result<(), Ending> {
        self.end_replication(index, one)?;
        let from = self.world.server_of(one.from);
        for bucket in &one.buckets {
            if self.world.servers[from].held[*bucket].state == Some(BucketState::Gone) {
                self.drop_copy(from, *bucket)?;
            }
        }
        self.commit(|world| world.proxy.batches[index] = None)
    }

    fn begin_anew(&mut self, index: usize, one: &Move) -> Result<(), Ending> {
        if one.step == BatchStep::Fencing {
            self.lift(index, one)?;
        }
        self.end_replication(index, one)?;
        let to = self.world.server_of(one.to);
        for bucket in &one.buckets {
            if self.world.servers[to].held[*bucket].state == Some(BucketState::Arriving) {
                self.drop_copy(to, *bucket)?;
            }
        }
        self.set_step(index, BatchStep::Planned, None)
    }

    fn end_replication(&mut self, index: usize, one: &Move) -> Result<(), Ending> {
        let (from, to) = (self.world.server_of(one.from), self.world.server_of(one.to));
        if self.world.servers[to].subscriptions[index].is_some() {
            self.commit_on(to, |world| world.servers[to].subscriptions[index] = None)?;
        }
        if self.world.servers[from].slots[index].is_some() {
            self.commit_on(from, |world| world.servers[from].slots[index] = None)?;
        }
        Ok(())
    }

    fn set_step(
        &mut self,
        index: usize,
        step: BatchStep,
        version: Option<i64>,
    ) -> Result<(), Ending> {
        self.commit(|world| {
            if let Some(one) = &mut world.proxy.batches[index] {
                (one.step, one.version) = (step, version);
            }
        })
    }
}

impl World {
    /// What the source has of a batch arrives at the target.
    fn apply(&mut self, from: usize, to: usize, one: &Move) {
        for bucket in &one.buckets {
            self.servers[to].held[*bucket].rows = self.servers[from].held[*bucket].rows;
        }
    }
}

/// More steps than any run takes.
const STEPS_MAX: usize = 120;
