//! Reading relations into memory before the clients connect, and how much of them is there.

use std::collections::BTreeMap;

use lab::Installation;
use probe::ProbeError;
use server::Client;
use server::message::with_detail as server_words;
use server::quote::{identifier, literal};
use spec::{CacheWarmer, TrialData, WarmedRelations};

/// Reason why relations could not be warmed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum WarmError {
    #[error("warming: {}", server_words(.0))]
    Server(#[from] postgres::Error),
    #[error("warming: {0}")]
    Residency(#[from] ProbeError),
}

/// Result of warming.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WarmingResult {
    /// Per relation, bytes in memory and bytes in all, as far as that can be told.
    pub residency: BTreeMap<String, (f64, f64)>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// The extensions that warming uses and this installation has.
pub fn extensions(data: &TrialData, installation: &Installation) -> Vec<String> {
    let Some(warm) = &data.warm else { return Vec::new() };
    let mut names: Vec<&str> = warm.with.iter().map(|way| extension(*way)).collect();
    names.retain(|name| installation.has_extension(name));
    // Looking through all of shared_buffers takes its time; pgfincore knows more, sooner.
    let needs_buffers =
        warm.with.contains(&CacheWarmer::PrewarmBuffer) || !names.contains(&"pgfincore");
    if needs_buffers && installation.has_extension(BUFFERCACHE) {
        names.push(BUFFERCACHE);
    }
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}

/// Reads the relations in each of the ways that this server has, in their order.
pub fn warm(client: &mut Client, warm: &WarmedRelations) -> Result<WarmingResult, WarmError> {
    let (ways, notes) = ways(client, warm)?;
    let mut warmed = WarmingResult { notes, ..WarmingResult::default() };
    for sql in ways {
        client.simple_query(&sql)?;
    }
    let names: Vec<&str> = warm.relations.iter().map(String::as_str).collect();
    let found = probe::residency(client, &names)?;
    for residency in &found.relations {
        if let Some(share) = residency.in_memory() {
            let bytes = residency.bytes as f64;
            warmed.residency.insert(residency.relation.clone(), (share * bytes, bytes));
        }
    }
    warmed.notes.extend(found.notes);
    if warmed.residency.is_empty() {
        // That one of two places cannot be looked into matters only where neither can.
        warmed.notes.extend(found.unseen.iter().map(ToString::to_string));
    }
    Ok(warmed)
}

/// Statements that [`warm`] sends to read the relations, if the server has an extension for it.
pub fn statements(client: &mut Client, warm: &WarmedRelations) -> Result<Vec<String>, WarmError> {
    Ok(ways(client, warm)?.0)
}

/// The statements, and a note of each way that this server does not have.
fn ways(
    client: &mut Client,
    warm: &WarmedRelations,
) -> Result<(Vec<String>, Vec<String>), WarmError> {
    let (mut statements, mut notes) = (Vec::new(), Vec::new());
    let installed = installed(client)?;
    for way in &warm.with {
        let schema = installed.iter().find(|(name, _)| name == extension(*way));
        let Some((_, schema)) = schema else {
            notes.push(format!("not warmed with {}: not installed", extension(*way)));
            continue;
        };
        let schema = identifier(schema);
        for relation in &warm.relations {
            let relation = literal(relation);
            statements.push(match way {
                CacheWarmer::Pgfincore => {
                    format!("SELECT * FROM {schema}.pgfadvise_willneed({relation})")
                }
                CacheWarmer::PrewarmRead => {
                    format!("SELECT {schema}.pg_prewarm({relation}, 'read')")
                }
                CacheWarmer::PrewarmBuffer => {
                    format!("SELECT {schema}.pg_prewarm({relation}, 'buffer')")
                }
            });
        }
    }
    Ok((statements, notes))
}

/// Extensions of the database and the schemas of their functions.
fn installed(client: &mut Client) -> Result<Vec<(String, String)>, postgres::Error> {
    let rows = client.query(EXTENSIONS, &[])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The extension that a way of warming needs.
pub fn extension(way: CacheWarmer) -> &'static str {
    match way {
        CacheWarmer::Pgfincore => "pgfincore",
        CacheWarmer::PrewarmRead | CacheWarmer::PrewarmBuffer => "pg_prewarm",
    }
}

const EXTENSIONS: &str = "SELECT e.extname::text, n.nspname::text FROM pg_extension e \
    JOIN pg_namespace n ON n.oid = e.extnamespace";

const BUFFERCACHE: &str = "pg_buffercache";
