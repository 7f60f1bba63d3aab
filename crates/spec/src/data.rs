//! The data of a study: how they are built, what becomes of them between trials, how they are
//! warmed.

use std::path::PathBuf;

use crate::fields::{Fields, VariableValues};
use crate::folder::StudyFolder;
use crate::problem::Problems;
use crate::value::{Table, Value};

/// The data of a trial. Two trials with equal data on equal topologies can share one build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrialData {
    /// Node on which they are built.
    pub node: String,
    /// pgbench's tables, built first.
    pub pgbench: Option<PgbenchTables>,
    /// A script of the study's own, run after that.
    pub script: Option<ScriptText>,
    /// A file of the user's, loaded after that. No `study.toml` names one: `pgrig compare` does.
    pub file: Option<DataFile>,
    /// The data of a study that is sharded, built after those.
    pub buckets: Option<BucketedData>,
    /// VariableValues of the script, each written `:name` in it; `rows` is one of them. Workloads have
    /// them too.
    pub variables: VariableValues,
    /// Treatment of the data between trials.
    pub reset: DataReset,
    /// Relations that are read into memory before the clients come.
    pub warm: Option<WarmedRelations>,
}

/// pgbench's tables, as `pgbench -i` builds them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PgbenchTables {
    /// 100,000 accounts each.
    pub scale: u32,
    /// Fill factor of the tables, in percent.
    pub fillfactor: u8,
    /// Unlogged tables.
    pub unlogged: bool,
    /// Foreign keys between them.
    pub foreign_keys: bool,
}

/// Data whose rows belong to keys: in the buckets of a PL/Proxy cluster where the topology has
/// one, else as a single bucket in schema public.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketedData {
    /// The tables and functions of one bucket; `{bucket}` stands for its schema.
    pub template: ScriptText,
    /// The rows of one bucket; `{keys}` stands for a query that gives its keys, `{key_max}` for
    /// the largest of all.
    pub fill: ScriptText,
    /// Keys, from 1 on.
    pub keys: u32,
    /// The column that holds the key.
    pub key: String,
}

/// A script and the file it stands in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptText {
    /// Name of the file in the study's folder.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A script, a dump or a base backup outside a study's folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataFile {
    /// The path.
    pub path: PathBuf,
    /// The seed of `random()` in a script, in millionths.
    pub seed: u32,
    /// True if the planner is given statistics of the rows. A base backup keeps those that it has.
    pub analyzes: bool,
    /// The database of a base backup that has the data; the only one where none is given.
    pub database: Option<String>,
}

/// Treatment of the data between trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataReset {
    /// Every trial begins with a copy of the data as they were built.
    Clone,
    /// Trials go on with what the ones before have left.
    Keep,
    /// Machines and servers go on as long as they are whole: all their programs run, what they say of themselves is
    /// true, and each server of the rig's has the role that the topology gives it. Else as [`DataReset::Clone`].
    Whole,
}

/// Relations that are read into memory before the clients come, and the way they are read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarmedRelations {
    /// Tables and indexes.
    pub relations: Vec<String>,
    /// In this order.
    pub with: Vec<CacheWarmer>,
}

/// A way to read relations into memory. Each needs its extension, which is created before
/// warming where it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheWarmer {
    /// pgfincore: into the operating system's cache, and tells what lies there.
    Pgfincore,
    /// pg_prewarm in mode `read`: into the operating system's cache.
    PrewarmRead,
    /// pg_prewarm in mode `buffer`: into shared_buffers.
    PrewarmBuffer,
}

impl TrialData {
    pub(crate) fn parse(
        value: Option<&Value>,
        first_node: &str,
        folder: &StudyFolder,
        problems: &Problems,
    ) -> TrialData {
        let empty = Value { span: 0..0, is: crate::value::Is::Table(Table::default()) };
        let Some(fields) = Fields::of("data", value.unwrap_or(&empty), problems) else {
            return TrialData::none(first_node);
        };
        let mut variables = fields.variables("variables");
        if let Some(rows) = fields.integer("rows", 0..=i64::MAX) {
            variables.insert("rows".to_owned(), rows.to_string());
        }
        let mut data = TrialData {
            node: fields.text("node").unwrap_or(first_node).to_owned(),
            pgbench: fields.value("pgbench").and_then(|v| PgbenchTables::parse(v, problems)),
            script: fields.value("script").and_then(|v| script_file(v, folder, problems)),
            file: None,
            buckets: fields.value("buckets").and_then(|v| BucketedData::parse(v, folder, problems)),
            variables,
            reset: fields.choice("reset", RESETS).unwrap_or(DataReset::Clone),
            warm: fields.value("warm").and_then(|value| WarmedRelations::parse(value, problems)),
        };
        fields.finish();
        if let Some(buckets) = &data.buckets {
            data.variables.entry("rows".to_owned()).or_insert_with(|| buckets.keys.to_string());
        }
        data
    }

    fn none(node: &str) -> TrialData {
        TrialData {
            node: node.to_owned(),
            pgbench: None,
            script: None,
            file: None,
            buckets: None,
            variables: VariableValues::new(),
            reset: DataReset::Clone,
            warm: None,
        }
    }
}

impl PgbenchTables {
    fn parse(value: &Value, problems: &Problems) -> Option<PgbenchTables> {
        let fields = Fields::of("pgbench", value, problems)?;
        let tables = PgbenchTables {
            scale: fields.integer("scale", 1..=i32::MAX as u32).unwrap_or(1),
            fillfactor: fields.integer("fillfactor", 10..=100).unwrap_or(100),
            unlogged: fields.choice("logging", LOGGING).unwrap_or(false),
            foreign_keys: fields.choice("foreign_keys", SWITCH).unwrap_or(false),
        };
        fields.finish();
        Some(tables)
    }
}

impl BucketedData {
    fn parse(value: &Value, folder: &StudyFolder, problems: &Problems) -> Option<BucketedData> {
        let fields = Fields::of("buckets", value, problems)?;
        let script = |key| script_file(fields.required(key)?, folder, problems);
        let (template, fill) = (script("template"), script("fill"));
        let key = fields.required("key").and_then(|_| fields.text("key")).map(str::to_owned);
        fields.required("keys");
        let keys = fields.integer("keys", 1..=i32::MAX as u32);
        fields.finish();
        Some(BucketedData { template: template?, fill: fill?, keys: keys?, key: key? })
    }
}

impl WarmedRelations {
    fn parse(value: &Value, problems: &Problems) -> Option<WarmedRelations> {
        let fields = Fields::of("warm", value, problems)?;
        let relations: Vec<String> =
            fields.texts("relations").into_iter().map(|(name, _)| name).collect();
        if relations.is_empty() {
            problems.add(fields.span(), "warm names no relations");
        }
        let ways = fields.list("with").iter();
        let mut with: Vec<CacheWarmer> =
            ways.filter_map(|way| crate::fields::choice("with", way, WARMERS, problems)).collect();
        if with.is_empty() {
            with.push(CacheWarmer::PrewarmRead);
        }
        fields.finish();
        Some(WarmedRelations { relations, with })
    }
}

/// The script that a value names: a file of the study's folder.
pub(crate) fn script_file(
    value: &Value,
    folder: &StudyFolder,
    problems: &Problems,
) -> Option<ScriptText> {
    let name = crate::fields::text("script", value, problems)?;
    match folder.files.get(name) {
        Some(text) => Some(ScriptText { name: name.to_owned(), text: text.clone() }),
        None => {
            let scripts = folder.files.keys().map(String::as_str);
            let scripts = scripts.filter(|file| file.ends_with(".sql"));
            problems.unknown(&value.span, "script file", name, scripts);
            None
        }
    }
}

const RESETS: &[(&str, DataReset)] =
    &[("clone", DataReset::Clone), ("keep", DataReset::Keep), ("whole", DataReset::Whole)];
const LOGGING: &[(&str, bool)] = &[("logged", false), ("unlogged", true)];
const SWITCH: &[(&str, bool)] = &[("off", false), ("on", true)];
const WARMERS: &[(&str, CacheWarmer)] = &[
    ("pgfincore", CacheWarmer::Pgfincore),
    ("pg_prewarm:read", CacheWarmer::PrewarmRead),
    ("pg_prewarm:buffer", CacheWarmer::PrewarmBuffer),
];
