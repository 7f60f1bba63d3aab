//! Needs of a study compared with the machine's resources, before anything is built.

use lab::machine::HugePages;
use site::SitePlan;
use spec::{Pairing, ScheduledTrial, Study, TrialPoint, UnfitPolicy};
use terms::{grouped, size};

use crate::fit::estimate::{self, PlanEstimate, open_files};
use crate::fit::has::{HasServers, HostHas, MachineResources};
use crate::fit::hosts;
use crate::fit::huge_pages;
use crate::fit::misfit::{PointMisfit, ResourceNeed};
use crate::fit::outside_misfit;
use crate::fit::packages;
use crate::fit::point::{disk_misfit, misfits_of};

/// The answer to "does it fit?".
#[derive(Clone, Debug, PartialEq)]
pub struct Preflight {
    /// Cost of the trials that fit.
    pub estimate: PlanEstimate,
    /// Trials that fit.
    pub trials: usize,
    /// The plan's needs, for people.
    pub needs: Vec<ResourceNeed>,
    /// Points that do not fit, with all that is in the way, in the order of the study.
    pub misfits: Vec<(usize, Vec<PointMisfit>)>,
    /// The points that are to be measured in pairs.
    pub pairs: Vec<PointPair>,
    /// True if the study must not begin: a point says so, or none fits.
    pub refused: bool,
    /// Huge pages of the machine, before the study's servers take any.
    pub(crate) huge_pages: HugePages,
}

/// Two points that are to be measured in pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct PointPair {
    /// Both, numerator first.
    pub name: String,
    /// Why they cannot take turns here, so that whole trials are compared; none if they
    /// can.
    pub misfit: Option<String>,
    /// The rounds of whole trials that both have, for a verdict where they cannot take turns.
    pub rounds: u32,
    /// True if so many rounds are enough for a verdict.
    pub has_verdict: bool,
    /// The time that an interval takes, in seconds, where their time is shorter.
    pub short_s: Option<f64>,
}

impl Preflight {
    /// Compares the needs of these trials, each by itself and all together.
    pub fn of(study: &Study, trials: &[ScheduledTrial], has: &MachineResources) -> Preflight {
        let mut planned: Vec<usize> = trials.iter().map(|trial| trial.point).collect();
        planned.sort_unstable();
        planned.dedup();
        if matches!(has.servers, HasServers::Built(_)) {
            packages::ask(planned.iter().map(|index| &study.points[*index]));
        }
        let mut misfits: Vec<(usize, Vec<PointMisfit>)> = planned
            .iter()
            .map(|index| (*index, misfits_of(&study.points[*index], has)))
            .filter(|(_, misfits)| !misfits.is_empty())
            .collect();
        let fits = |index: usize, misfits: &[(usize, Vec<PointMisfit>)]| {
            misfits.iter().all(|m| m.0 != index)
        };
        let mut fitting: Vec<usize> =
            planned.iter().copied().filter(|index| fits(*index, &misfits)).collect();
        let taken = hosts::taken(study, &fitting, &has.hosts);
        fitting.retain(|index| fits(*index, &taken));
        misfits.extend(taken);
        if let HasServers::Outside(outside) = &has.servers {
            let unlike = outside_misfit::settings(study, &fitting, outside);
            fitting.retain(|index| fits(*index, &unlike));
            misfits.extend(unlike);
        }
        misfits.sort_by_key(|(index, _)| *index);
        let estimate = |fitting: &[usize]| {
            let trials: Vec<ScheduledTrial> =
                trials.iter().filter(|trial| fitting.contains(&trial.point)).cloned().collect();
            let sites = match has.servers {
                HasServers::Outside(_) => SitePlan::on_target(study, fitting),
                HasServers::Built(_) | HasServers::OnHosts(_) => SitePlan::all(study, fitting),
            };
            (PlanEstimate::of(study, &trials, &sites, has.slowdown), trials.len())
        };
        let (mut cost, mut count) = estimate(&fitting);
        if let Some(misfit) = disks_misfit(study, trials, &fitting, &cost, has) {
            // All sites share the disk, so that none of them fits by itself.
            misfits.extend(fitting.drain(..).map(|index| (index, vec![misfit.clone()])));
            misfits.sort_by_key(|(index, _)| *index);
            (cost, count) = (PlanEstimate::default(), 0);
        }
        let refuses = |(index, _): &(usize, Vec<PointMisfit>)| {
            study.points[*index].unfit == UnfitPolicy::Refuse
        };
        let refused = fitting.is_empty() || misfits.iter().any(refuses);
        let pairings = study.pairings_of(trials);
        let needs = needs(study, &fitting, &pairings, &cost, has);
        let pairs = pairings.iter().map(|one| PointPair::of(study, one, &fitting, has)).collect();
        let huge_pages = has.huge_pages.clone();
        Preflight { estimate: cost, trials: count, needs, misfits, pairs, refused, huge_pages }
    }

    /// Why a point cannot run, in one line; none if it can.
    pub fn reason(&self, point: usize) -> Option<String> {
        let (_, misfits) = self.misfits.iter().find(|(index, _)| *index == point)?;
        let one = |misfit: &PointMisfit| format!("needs {}, has {}", misfit.needs, misfit.has);
        Some(misfits.iter().map(one).collect::<Vec<_>>().join("; "))
    }

    /// Misfits of all points, the largest of each kind.
    pub fn distinct_misfits(&self) -> Vec<&PointMisfit> {
        let mut distinct: Vec<&PointMisfit> = Vec::new();
        for misfit in self.misfits.iter().flat_map(|(_, misfits)| misfits) {
            match distinct.iter_mut().find(|known| known.what == misfit.what) {
                Some(known) if known.amount < misfit.amount => *known = misfit,
                Some(_) => {}
                None => distinct.push(misfit),
            }
        }
        distinct
    }
}

/// Why the sites do not fit on the disk, or on that of the host that lacks most; none where they do.
fn disks_misfit(
    study: &Study,
    trials: &[ScheduledTrial],
    fitting: &[usize],
    cost: &PlanEstimate,
    has: &MachineResources,
) -> Option<PointMisfit> {
    let hosts = match &has.servers {
        HasServers::Outside(_) => return None,
        HasServers::Built(_) => {
            return (cost.disk_bytes > has.disk_bytes).then(|| disk_misfit(cost.disk_bytes, has));
        }
        HasServers::OnHosts(hosts) => hosts,
    };
    let trials: Vec<ScheduledTrial> =
        trials.iter().filter(|trial| fitting.contains(&trial.point)).cloned().collect();
    let sites = SitePlan::all(study, fitting);
    // What is free on one host is of no use to another one.
    let short = hosts.iter().filter_map(|host| {
        let is_there = |node: &str| host.nodes.iter().any(|name| name == node);
        let of = |site| estimate::disk_bytes_of(study, &trials, site, is_there);
        let needs: u64 = sites.iter().map(of).sum();
        let lacks = needs.checked_sub(host.resources.disk_bytes).filter(|lacks| *lacks > 0)?;
        Some((lacks, host, needs))
    });
    let (_, host, needs) = short.max_by_key(|(lacks, ..)| *lacks)?;
    Some(PointMisfit {
        what: format!("disk of host {}", host.name),
        amount: needs,
        needs: format!("{} disk on host {} for {}", size(needs), host.name, host.nodes.join(", ")),
        has: format!("{} free there", size(host.resources.disk_bytes)),
        hint: Some(
            "set TMPDIR on that host to a directory on a larger disk, or place fewer nodes there"
                .to_owned(),
        ),
    })
}

impl PointPair {
    fn of(
        study: &Study,
        pairing: &Pairing,
        fitting: &[usize],
        has: &MachineResources,
    ) -> PointPair {
        let name = |point: usize| &study.points[point].name;
        let (above, below) = (name(pairing.above), name(pairing.below));
        let runs = |point| fitting.contains(&point);
        let misfit = match &has.servers {
            _ if !runs(pairing.above) || !runs(pairing.below) => {
                Some("one of them is left out".to_owned())
            }
            HasServers::Outside(_) => Some("pairs need servers of pgrig's own".to_owned()),
            HasServers::Built(_) | HasServers::OnHosts(_) => {
                pairs_misfit(study, pairing, has.memory_bytes, &has.huge_pages)
            }
        };
        let needs_s = estimate::interval_s(study, pairing);
        let short_s = (needs_s * 1e3 > pairing.pairs.max_ms as f64).then_some(needs_s);
        let rounds = |point: usize| study.points[point].rounds;
        let rounds = rounds(pairing.above).min(rounds(pairing.below));
        let has_verdict = rounds as usize >= stats::HEADLINE_ROUNDS_MIN;
        PointPair { name: format!("{above} ÷ {below}"), misfit, rounds, has_verdict, short_s }
    }
}

fn needs(
    study: &Study,
    fitting: &[usize],
    pairings: &[Pairing],
    cost: &PlanEstimate,
    has: &MachineResources,
) -> Vec<ResourceNeed> {
    let points = || fitting.iter().map(|index| &study.points[*index]);
    // Without a point no connection is needed.
    let connections = points().map(TrialPoint::clients).max().unwrap_or(0);
    let files = points().map(open_files).max().unwrap_or(0); // And no file.
    let mut needs = Vec::new();
    let mut add = |what, needs_: String, has: String| {
        needs.push(ResourceNeed { what, needs: needs_, has });
    };
    if let HasServers::Built(programs) = &has.servers {
        add("memory", size(cost.memory_bytes), format!("{} available", size(has.memory_bytes)));
        add("disk", size(cost.disk_bytes), format!("{} free", size(has.disk_bytes)));
        let version = programs.of_run.version();
        add("servers", "PostgreSQL 13 or later".to_owned(), format!("PostgreSQL {version}"));
    }
    if let HasServers::OnHosts(hosts) = &has.servers {
        let each = |of: fn(&HostHas) -> u64| {
            let each = hosts.iter().map(|host| format!("{} on {}", size(of(host)), host.name));
            each.collect::<Vec<_>>().join(", ")
        };
        let memory = each(|host| host.resources.memory_bytes);
        add("memory", size(cost.memory_bytes), memory);
        add("disk", size(cost.disk_bytes), each(|host| host.resources.disk_bytes));
        let mut versions: Vec<String> = hosts
            .iter()
            .map(|host| format!("{} on {}", host.installation.version(), host.name))
            .collect();
        versions.sort();
        let versions = format!("PostgreSQL {}", versions.join(", "));
        add("servers", "PostgreSQL 13 or later".to_owned(), versions);
    }
    let allowed = match &has.servers {
        HasServers::Built(_) | HasServers::OnHosts(_) => "as many as it needs".to_owned(),
        HasServers::Outside(outside) => format!("{} free on the target", outside.connections),
    };
    add("connections", grouped(u64::from(connections)), allowed);
    let limit = match has.open_files {
        u64::MAX => "no limit".to_owned(),
        limit => format!("{} (hard limit)", grouped(limit)),
    };
    add("open files", grouped(files), limit);
    if let HasServers::Built(_) = &has.servers {
        let sides = pairings.iter().map(|one| [one.above, one.below]);
        let sides = sides.filter(|sides| sides.iter().all(|side| fitting.contains(side)));
        let pairs = sides.map(|sides| sides.map(|side| &study.points[side]).to_vec());
        let groups = points().map(|point| vec![point]).chain(pairs);
        needs.extend(huge_pages::need(groups, &has.huge_pages));
    }
    needs
}

/// Why the servers of both points do not fit beside each other; none where they do.
pub(crate) fn pairs_misfit(
    study: &Study,
    pairing: &Pairing,
    memory_bytes: u64,
    pages: &HugePages,
) -> Option<String> {
    let points = [pairing.above, pairing.below].map(|point| &study.points[point]);
    let needs = points.map(|point| estimate::memory(point).total_bytes()).iter().sum::<u64>();
    if needs > memory_bytes {
        let (needs, has) = (size(needs), size(memory_bytes));
        return Some(format!("needs {needs} of memory for two servers at once, has {has}"));
    }
    huge_pages::uneven(points, pages)
}

#[cfg(test)]
mod tests {
    use lab::Resources;
    use spec::StudyProfile;

    use super::*;

    /// What is free on one host is of no use to a server on another one.
    #[test]
    fn the_disk_of_each_host_has_room_for_its_own_servers() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        let folder = record::read_folder(&folder.join("replication")).expect("a folder");
        let study = Study::parse(&folder, StudyProfile::Quick).expect("a study");
        let trials = study.trials(None);
        let points: Vec<usize> = (0..study.points.len()).collect();
        let sites = SitePlan::all(&study, &points);
        let cost = PlanEstimate::of(&study, &trials, &sites, 1.0);
        let installation = lab::find::find(None).expect("a PostgreSQL");
        let here = Resources::here(&std::env::temp_dir()).expect("this machine");
        // The hosts of the primary and of the standbys, with so much room.
        let check = |primary: u64, standbys: u64, expected: Option<&str>| {
            let host = |name: &str, nodes: &[&str], disk_bytes: u64| HostHas {
                name: name.to_owned(),
                nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
                installation: installation.clone(),
                resources: Resources { disk_bytes, ..here.clone() },
            };
            let hosts = vec![
                host("db1", &["primary"], primary),
                host("db2", &["standby1", "standby2"], standbys),
            ];
            let has = MachineResources::here(installation.clone(), &std::env::temp_dir())
                .expect("this machine");
            let has = MachineResources { servers: HasServers::OnHosts(hosts), ..has };
            let misfit = disks_misfit(&study, &trials, &points, &cost, &has);
            let what = misfit.as_ref().map(|misfit| misfit.what.as_str());
            assert_eq!(what, expected, "{primary} {standbys}");
        };
        let much = 1 << 50;
        check(much, much, None);
        check(1 << 20, much, Some("disk of host db1"));
        check(much, 1 << 20, Some("disk of host db2"));
    }
}
