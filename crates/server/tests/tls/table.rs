//! The cases: what a server shows, what the conninfo asks for.

use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose as Purpose, GeneralSubtree, IsCa, KeyPair, KeyUsagePurpose as Use,
    NameConstraints, SerialNumber,
};
use rustls::version::{TLS12, TLS13};

use crate::certificates::{
    Holder, Years, alternatives, extension, server_params, set_name, set_years,
};
use crate::door::{Answer, Asks, Server, Speech};

/// One case.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) server: Server,
    /// The conninfo but for the port.
    pub(crate) conninfo: String,
    /// True if it has keywords of PostgreSQL 16 or 17.
    pub(crate) needs_new: bool,
}

/// Versions that a server speaks.
pub(crate) type Versions = &'static [&'static rustls::SupportedProtocolVersion];

static OLD: [&rustls::SupportedProtocolVersion; 1] = [&TLS12];
pub(crate) static NEW: [&rustls::SupportedProtocolVersion; 1] = [&TLS13];
static BOTH: [&rustls::SupportedProtocolVersion; 2] = [&TLS12, &TLS13];
const POSTGRESQL: &[&[u8]] = &[b"postgresql"];

/// What a server shows, and the files of its client.
struct Scene {
    name: &'static str,
    chain: Vec<Holder>,
    /// The text of sslrootcert.
    roots: String,
    lists: Lists,
}

/// Where the client's revocation lists are.
enum Lists {
    None,
    File(String),
    /// The names of the files in a directory, and their texts.
    Directory(Vec<(&'static str, String)>),
}

fn scene(name: &'static str, chain: &[&Holder], roots: &[&Holder]) -> Scene {
    Scene {
        name,
        chain: chain.iter().map(|holder| (*holder).clone()).collect(),
        roots: roots.iter().map(|root| root.pem.clone()).collect(),
        lists: Lists::None,
    }
}

fn listed(name: &'static str, chain: &[&Holder], roots: &[&Holder], lists: &[String]) -> Scene {
    Scene { lists: Lists::File(lists.concat()), ..scene(name, chain, roots) }
}

fn speaking(chain: &[Holder]) -> Server {
    Server::speaking(speech(chain))
}

fn speech(chain: &[Holder]) -> Speech {
    Speech {
        chain: chain.iter().map(|holder| holder.der.clone()).collect(),
        key: chain[0].private_key(),
        versions: &BOTH,
        alpn: POSTGRESQL,
        asks: Asks::No,
    }
}

/// Every case; files go into `directory`.
pub(crate) fn all(directory: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    let scenes = [chains(), dates(), purposes(), constraints(), lists()].concat_scenes();
    for scene in scenes {
        let place = directory.join(scene.name.replace([' ', '/'], "_"));
        std::fs::create_dir_all(&place).expect("a directory");
        let roots = write(&place, "root.crt", &scene.roots);
        let revoked = match &scene.lists {
            Lists::None => String::new(),
            Lists::File(text) => format!(" sslcrl={}", write(&place, "root.crl", text)),
            Lists::Directory(files) => {
                let lists = place.join("lists");
                std::fs::create_dir_all(&lists).expect("a directory");
                for (name, text) in files {
                    write(&lists, name, text);
                }
                format!(" sslcrldir={}", lists.display())
            }
        };
        let server = speaking(&scene.chain);
        for mode in ["prefer", "require", "verify-ca", "verify-full"] {
            cases.push(Case {
                name: format!("{}, {mode}", scene.name),
                server: server.clone(),
                conninfo: format!("host=localhost sslmode={mode} sslrootcert={roots}{revoked}"),
                needs_new: false,
            });
        }
    }
    names(directory, &mut cases);
    modes(directory, &mut cases);
    protocols(directory, &mut cases);
    versions(directory, &mut cases);
    client_certificates(directory, &mut cases);
    cases
}

trait ConcatScenes {
    fn concat_scenes(self) -> Vec<Scene>;
}

impl<const N: usize> ConcatScenes for [Vec<Scene>; N] {
    fn concat_scenes(self) -> Vec<Scene> {
        self.into_iter().flatten().collect()
    }
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// Who signed whom, and what the client has of it.
fn chains() -> Vec<Scene> {
    let root = Holder::root(|_| {});
    let other = Holder::root(|params| set_name(params, "other"));
    let namesake = Holder::root(|_| {});
    let middle = root.authority("middle", |_| {});
    let middle_namesake = root.authority("middle", |_| {});
    let (leaf, below) = (root.server(|_| {}), middle.server(|_| {}));
    let own = Holder::of_itself(server_params());
    let of_itself = |change: &dyn Fn(&mut CertificateParams)| {
        let mut params = server_params();
        params.key_usages = Vec::new();
        change(&mut params);
        Holder::of_itself(params)
    };
    let own_authority =
        of_itself(&|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    let own_plain = of_itself(&|params| {
        params.extended_key_usages = Vec::new();
        params.is_ca = IsCa::ExplicitNoCa;
    });
    let minted = |by: &Holder| by.server(|params| set_name(params, "minted"));
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let text = |name, roots: String| Scene { roots, ..scene(name, &[&leaf], &[]) };
    vec![
        scene("root and leaf", &[&leaf], &[&root]),
        scene("root sent along", &[&leaf, &root], &[&root]),
        scene("unknown root", &[&leaf, &root], &[&other]),
        scene("two roots", &[&leaf], &[&other, &root]),
        scene("namesake of the root", &[&leaf], &[&namesake]),
        scene("namesake and root", &[&leaf], &[&namesake, &root]),
        scene("link sent", &[&below, &middle], &[&root]),
        scene("link sent twice and others", &[&below, &leaf, &middle, &middle, &other], &[&root]),
        scene("link not sent", &[&below], &[&root]),
        scene("link in the file", &[&below], &[&root, &middle]),
        scene("namesake of the link in the file", &[&below, &middle], &[&root, &middle_namesake]),
        scene("link without root, sent", &[&below, &middle], &[&middle]),
        scene("link without root, not sent", &[&below], &[&middle]),
        scene("leaf as anchor", &[&leaf], &[&leaf]),
        scene("leaf and root as anchors", &[&leaf], &[&leaf, &root]),
        scene("leaf as authority", &[&minted(&leaf), &leaf], &[&leaf]),
        scene("leaf as authority, root there", &[&minted(&leaf), &leaf], &[&leaf, &root]),
        scene("leaf as link", &[&minted(&leaf), &leaf], &[&root]),
        scene("self-signed server", &[&own], &[&own]),
        scene("self-signed server without uses", &[&own_plain], &[&own_plain]),
        scene("self-signed server and authority", &[&own_authority], &[&own_authority]),
        scene("self-signed server, unknown", &[&own], &[&root]),
        scene("minted by a self-signed server", &[&minted(&own)], &[&own]),
        scene("minted by a plain self-signed server", &[&minted(&own_plain)], &[&own_plain]),
        scene("minted by a self-signed authority", &[&minted(&own_authority)], &[&own_authority]),
        text("empty file of roots", String::new()),
        text("file of roots without any", "nothing\n".to_owned()),
        text("file of roots with garbage", garbage.to_owned()),
        text("root and garbage", format!("{}{garbage}", root.pem)),
        text("garbage and root", format!("{garbage}{}", root.pem)),
    ]
}

fn dates() -> Vec<Scene> {
    let root = Holder::root(|_| {});
    let middle = root.authority("middle", |_| {});
    let leaf = |years| root.server(|params| set_years(params, years));
    let link = |years| root.authority("middle", |params| set_years(params, years));
    let of_root = |years| Holder::root(|params| set_years(params, years));
    let own = |years| {
        let mut params = server_params();
        set_years(&mut params, years);
        Holder::of_itself(params)
    };
    let (past, future) = (link(Years::Past), link(Years::Future));
    let (old, new) = (of_root(Years::Past), of_root(Years::Future));
    let (old_own, new_own) = (own(Years::Past), own(Years::Future));
    let expired = root.renewed(|params| set_years(params, Years::Past));
    let below = middle.server(|_| {});
    // The same link with two certificates.
    let stale = root.signs(
        {
            let mut params = middle.params.clone();
            set_years(&mut params, Years::Past);
            params
        },
        Arc::clone(&middle.key),
    );
    let other = Holder::root(|params| set_name(params, "other"));
    let crossed = other.signs(root.params.clone(), Arc::clone(&root.key));
    vec![
        scene("expired leaf", &[&leaf(Years::Past)], &[&root]),
        scene("leaf of the future", &[&leaf(Years::Future)], &[&root]),
        scene("expired link", &[&past.server(|_| {}), &past], &[&root]),
        scene("link of the future", &[&future.server(|_| {}), &future], &[&root]),
        scene("expired root", &[&old.server(|_| {})], &[&old]),
        scene("root of the future", &[&new.server(|_| {})], &[&new]),
        scene("expired self-signed server", &[&old_own], &[&old_own]),
        scene("self-signed server of the future", &[&new_own], &[&new_own]),
        scene("root expired and renewed", &[&leaf(Years::Now)], &[&expired, &root]),
        scene("root renewed and expired", &[&leaf(Years::Now)], &[&root, &expired]),
        scene("root expired, renewed one unknown", &[&leaf(Years::Now), &root], &[&expired]),
        scene("link expired in the file, valid one sent", &[&below, &middle], &[&root, &stale]),
        scene(
            "root expired, sent signed by another",
            &[&leaf(Years::Now), &crossed],
            &[&expired, &other],
        ),
        scene("root unknown, sent signed by another", &[&leaf(Years::Now), &crossed], &[&other]),
        scene("link valid in the file, expired one sent", &[&below, &stale], &[&root, &middle]),
    ]
}

/// Key usage, purposes, and Netscape's types.
fn purposes() -> Vec<Scene> {
    const NETSCAPE: &[u64] = &[2, 16, 840, 1, 113_730, 1, 1];
    let root = Holder::root(|_| {});
    let mut scenes = Vec::new();
    let leaf = |change: &dyn Fn(&mut CertificateParams)| root.server(|params| change(params));
    for (name, uses) in [
        ("leaf without uses", vec![]),
        ("leaf for key encipherment", vec![Use::KeyEncipherment]),
        ("leaf for key agreement", vec![Use::KeyAgreement]),
        ("leaf for signing certificates", vec![Use::KeyCertSign]),
        ("leaf for non-repudiation", vec![Use::ContentCommitment]),
        ("leaf for two uses", vec![Use::DigitalSignature, Use::KeyEncipherment]),
    ] {
        let leaf = leaf(&|params| params.key_usages = uses.clone());
        scenes.push(scene(name, &[&leaf], &[&root]));
    }
    for (name, purposes) in [
        ("leaf without purposes", vec![]),
        ("leaf for clients", vec![Purpose::ClientAuth]),
        ("leaf for any purpose", vec![Purpose::Any]),
        ("leaf for code", vec![Purpose::CodeSigning]),
        ("leaf for both", vec![Purpose::ClientAuth, Purpose::ServerAuth]),
    ] {
        let leaf = leaf(&|params| params.extended_key_usages = purposes.clone());
        scenes.push(scene(name, &[&leaf], &[&root]));
    }
    for (name, bits, is_critical) in [
        ("leaf of Netscape's server type", 0x40, false),
        ("leaf of Netscape's client type", 0x80, false),
        ("leaf of Netscape's critical server type", 0x40, true),
    ] {
        let kind = extension(NETSCAPE, &[3, 2, 6, bits], is_critical);
        let leaf = leaf(&|params| params.custom_extensions = vec![kind.clone()]);
        scenes.push(scene(name, &[&leaf], &[&root]));
    }
    for (name, uses) in [
        ("authority without uses", vec![]),
        ("authority not for certificates", vec![Use::CrlSign]),
        ("authority for signatures", vec![Use::DigitalSignature]),
        ("authority for certificates alone", vec![Use::KeyCertSign]),
    ] {
        let root = Holder::root(|params| params.key_usages = uses.clone());
        scenes.push(scene(name, &[&root.server(|_| {})], &[&root]));
    }
    for (name, purpose) in [
        ("link for servers", Purpose::ServerAuth),
        ("link for clients", Purpose::ClientAuth),
        ("link for any purpose", Purpose::Any),
    ] {
        let link = root.authority("middle", |params| {
            params.extended_key_usages = vec![purpose.clone()];
        });
        scenes.push(scene(name, &[&link.server(|_| {}), &link], &[&root]));
    }
    for (name, purpose) in
        [("root for servers", Purpose::ServerAuth), ("root for clients", Purpose::ClientAuth)]
    {
        let root = Holder::root(|params| params.extended_key_usages = vec![purpose.clone()]);
        scenes.push(scene(name, &[&root.server(|_| {})], &[&root]));
    }
    let link = root.authority("middle", |params| params.key_usages = vec![Use::CrlSign]);
    scenes.push(scene("link not for certificates", &[&link.server(|_| {}), &link], &[&root]));
    let elliptic = |algorithm| Arc::new(KeyPair::generate_for(algorithm).expect("a key"));
    let p384 = root.signs(server_params(), elliptic(&rcgen::PKCS_ECDSA_P384_SHA384));
    let ed25519 = root.signs(server_params(), elliptic(&rcgen::PKCS_ED25519));
    scenes.push(scene("leaf with P-384", &[&p384], &[&root]));
    scenes.push(scene("leaf with Ed25519", &[&ed25519], &[&root]));
    scenes
}

/// Who may be an authority, how far below, for which names; identifiers, and what nobody knows.
fn constraints() -> Vec<Scene> {
    const KEY_IDENTIFIER: &[u64] = &[2, 5, 29, 35];
    const UNKNOWN: &[u64] = &[1, 3, 6, 1, 4, 1, 99_999, 1];
    let root = Holder::root(|_| {});
    let mut scenes = Vec::new();
    for (name, kind) in [
        ("link that is none", IsCa::NoCa),
        ("link that says it is none", IsCa::ExplicitNoCa),
        ("link for one level", IsCa::Ca(BasicConstraints::Constrained(0))),
    ] {
        let link = root.authority("middle", |params| params.is_ca = kind);
        scenes.push(scene(name, &[&link.server(|_| {}), &link], &[&root]));
    }
    for (name, kind) in [
        ("root that is none", IsCa::NoCa),
        ("root that says it is none", IsCa::ExplicitNoCa),
        ("root for one level", IsCa::Ca(BasicConstraints::Constrained(0))),
    ] {
        let root = Holder::root(|params| params.is_ca = kind);
        scenes.push(scene(name, &[&root.server(|_| {})], &[&root]));
    }
    let bare = Holder::root(|params| {
        params.is_ca = IsCa::NoCa;
        params.key_usages = Vec::new();
    });
    scenes.push(scene("root without constraints and uses", &[&bare.server(|_| {})], &[&bare]));
    for (name, most) in [("root too far", 0), ("root near enough", 1)] {
        let root = Holder::root(|params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Constrained(most));
        });
        let link = root.authority("middle", |_| {});
        scenes.push(scene(name, &[&link.server(|_| {}), &link], &[&root]));
    }
    let high = root.authority("high", |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    });
    let low = high.authority("low", |_| {});
    scenes.push(scene("link too far", &[&low.server(|_| {}), &low, &high], &[&root]));
    let ca = root.server(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    scenes.push(scene("server that is an authority", &[&ca], &[&root]));
    let limits = |permitted: &[&str], excluded: &[&str]| {
        let subtrees = |names: &[&str]| {
            names.iter().map(|name| GeneralSubtree::DnsName((*name).to_owned())).collect()
        };
        Some(NameConstraints {
            permitted_subtrees: subtrees(permitted),
            excluded_subtrees: subtrees(excluded),
        })
    };
    for (name, constraints) in [
        ("names within limits", limits(&["localhost"], &[])),
        ("names beyond limits", limits(&["example.org"], &[])),
        ("names excluded", limits(&[], &["localhost"])),
    ] {
        let link = root.authority("middle", |params| params.name_constraints = constraints.clone());
        scenes.push(scene(name, &[&link.server(|_| {}), &link], &[&root]));
        let root = Holder::root(|params| params.name_constraints = constraints);
        let name = match name {
            "names within limits" => "names within the root's limits",
            "names beyond limits" => "names beyond the root's limits",
            _ => "names excluded by the root",
        };
        scenes.push(scene(name, &[&root.server(|_| {})], &[&root]));
        let common = root.server(|params| {
            params.subject_alt_names = Vec::new();
            set_name(params, "localhost");
        });
        let name = match name {
            "names within the root's limits" => "common name within limits",
            "names beyond the root's limits" => "common name beyond limits",
            _ => "common name excluded",
        };
        scenes.push(scene(name, &[&common], &[&root]));
    }
    let wrong = extension(KEY_IDENTIFIER, &[0x30, 6, 0x80, 4, 1, 2, 3, 4], false);
    let change = |params: &mut CertificateParams| {
        params.use_authority_key_identifier_extension = false;
        params.custom_extensions = vec![wrong.clone()];
    };
    scenes.push(scene("leaf that names another key", &[&root.server(change)], &[&root]));
    let link = root.authority("middle", change);
    scenes.push(scene("link that names another key", &[&link.server(|_| {}), &link], &[&root]));
    let named = Holder::root(|params| params.custom_extensions = vec![wrong.clone()]);
    scenes.push(scene("root that names another key", &[&named.server(|_| {})], &[&named]));
    let number = extension(KEY_IDENTIFIER, &[0x30, 3, 0x82, 1, 99], false);
    let odd = root.server(|params| {
        params.use_authority_key_identifier_extension = false;
        params.custom_extensions = vec![number];
    });
    scenes.push(scene("leaf that names another number", &[&odd], &[&root]));
    let silent = root.server(|params| params.use_authority_key_identifier_extension = false);
    scenes.push(scene("leaf that names no key", &[&silent], &[&root]));
    for (name, is_critical) in [("unknown extension", false), ("unknown critical extension", true)]
    {
        let unknown = extension(UNKNOWN, &[5, 0], is_critical);
        let leaf = root.server(|params| params.custom_extensions = vec![unknown.clone()]);
        scenes.push(scene(name, &[&leaf], &[&root]));
        let root = Holder::root(|params| params.custom_extensions = vec![unknown]);
        let name = match is_critical {
            false => "root with an unknown extension",
            true => "root with an unknown critical extension",
        };
        scenes.push(scene(name, &[&root.server(|_| {})], &[&root]));
    }
    scenes
}

/// Revocation lists.
fn lists() -> Vec<Scene> {
    let numbered = |number: u64| {
        move |params: &mut CertificateParams| {
            params.serial_number = Some(SerialNumber::from(number));
        }
    };
    let root = Holder::root(numbered(1));
    let other = Holder::root(|params| set_name(params, "other"));
    let namesake = Holder::root(|_| {});
    let middle = root.authority("middle", numbered(2));
    let (leaf, below) = (root.server(numbered(3)), middle.server(numbered(4)));
    let own = Holder::of_itself(server_params());
    let silent = Holder::root(|params| params.key_usages = vec![Use::KeyCertSign]);
    let good = root.list(Years::Now, &[]);
    let of_middle = |revoked: &[u64]| middle.list(Years::Now, revoked);
    let (chain, roots) = (&[&below, &middle][..], &[&root][..]);
    let in_directory = |name, files: Vec<(&'static str, String)>| Scene {
        lists: Lists::Directory(files),
        ..scene(name, &[&leaf], roots)
    };
    vec![
        listed("list of nobody", &[&leaf], roots, std::slice::from_ref(&good)),
        listed("leaf revoked", &[&leaf], roots, &[root.list(Years::Now, &[3])]),
        listed("another revoked", &[&leaf], roots, &[root.list(Years::Now, &[9])]),
        listed("root revoked by itself", &[&leaf], roots, &[root.list(Years::Now, &[1])]),
        listed("list of the past", &[&leaf], roots, &[root.list(Years::Past, &[])]),
        listed("list of the future", &[&leaf], roots, &[root.list(Years::Future, &[])]),
        listed(
            "list of the future that revokes",
            &[&leaf],
            roots,
            &[root.list(Years::Future, &[3]), good.clone()],
        ),
        listed("list of another", &[&leaf], roots, &[other.list(Years::Now, &[])]),
        listed("list of a namesake", &[&leaf], roots, &[namesake.list(Years::Now, &[])]),
        listed("lists of two", &[&leaf], roots, &[other.list(Years::Now, &[]), good.clone()]),
        listed(
            "older list, newer one revokes",
            &[&leaf],
            roots,
            &[root.list_of(2015, 2800, &[]), root.list_of(2020, 2800, &[3])],
        ),
        listed(
            "newer list revokes, older one",
            &[&leaf],
            roots,
            &[root.list_of(2020, 2800, &[3]), root.list_of(2015, 2800, &[])],
        ),
        listed(
            "expired list and a good one",
            &[&leaf],
            roots,
            &[root.list(Years::Past, &[]), good.clone()],
        ),
        listed("lists of both authorities", chain, roots, &[good.clone(), of_middle(&[])]),
        listed("no list of the link", chain, roots, std::slice::from_ref(&good)),
        listed("no list of the root", chain, roots, &[of_middle(&[])]),
        listed("link revoked", chain, roots, &[root.list(Years::Now, &[2]), of_middle(&[])]),
        listed("leaf revoked by the link", chain, roots, &[good.clone(), of_middle(&[4])]),
        listed(
            "list of the link expired",
            chain,
            roots,
            &[good.clone(), middle.list(Years::Past, &[])],
        ),
        listed(
            "list of the root expired",
            chain,
            roots,
            &[root.list(Years::Past, &[]), of_middle(&[])],
        ),
        listed(
            "root not for lists",
            &[&silent.server(|_| {})],
            &[&silent],
            &[silent.list(Years::Now, &[])],
        ),
        listed("self-signed server with a list", &[&own], &[&own], &[own.list(Years::Now, &[])]),
        listed(
            "self-signed server with another's list",
            &[&own],
            &[&own],
            std::slice::from_ref(&good),
        ),
        listed("garbage for a list", &[&leaf], roots, &["garbage\n".to_owned()]),
        in_directory("directory without lists", Vec::new()),
        in_directory("directory with a list of another name", vec![("root.crl", good.clone())]),
    ]
}

/// Names of the server in each position.
fn names(directory: &Path, cases: &mut Vec<Case>) {
    let root = Holder::root(|_| {});
    let file = write(directory, "names.crt", &root.pem);
    let mut check = |host: &str, alternatives_of: &[&str], common: Option<&str>| {
        let leaf = root.server(|params| {
            params.subject_alt_names = alternatives(alternatives_of);
            params.distinguished_name = DistinguishedName::new();
            if let Some(common) = common {
                params.distinguished_name.push(DnType::CommonName, common);
            }
        });
        let shown = if host.is_empty() { String::new() } else { format!("host={host} ") };
        cases.push(Case {
            name: format!("{host:?} for {alternatives_of:?} and {common:?}"),
            server: speaking(&[leaf]),
            conninfo: format!("{shown}hostaddr=127.0.0.1 sslmode=verify-full sslrootcert={file}"),
            needs_new: false,
        });
    };
    let db = "db.example.org";
    check(db, &[db], None);
    check(db, &["DB.Example.ORG"], None);
    check(db, &["other.example.org"], None);
    check(db, &["other.example.org", db], None);
    check(db, &[], Some(db));
    check(db, &[], Some("DB.example.org"));
    check(db, &[], Some("other"));
    check(db, &["other.example.org"], Some(db));
    check(db, &["IP:127.0.0.1"], Some(db));
    check(db, &[], None);
    check("db.example.org.", &[db], None);
    check(db, &["db.example.org."], None);
    check(db, &["*.example.org"], None);
    check(db, &["*.EXAMPLE.org"], None);
    check(db, &[], Some("*.example.org"));
    check("a.db.example.org", &["*.example.org"], None);
    check("a.db.example.org", &["*.*.example.org"], None);
    check("a.db.example.org", &["a.*.example.org"], None);
    check("example.org", &["*.example.org"], None);
    check("example.org", &["*.org"], None);
    check(db, &["d*.example.org"], None);
    check(db, &["*b.example.org"], None);
    check(db, &["db.*.org"], None);
    check(db, &["db.example.*"], None);
    check(db, &["*.*"], None);
    check(db, &["*"], None);
    check("localhost", &["*"], None);
    check("localhost", &["*."], None);
    check("localhost", &["*host"], None);
    check("localhost", &["localhost.example.org"], None);
    check(db, &["example.org"], None);
    check(db, &["db.example.org.evil.net"], None);
    check(db, &["xdb.example.org"], None);
    check("xn--bcher-kva.example.org", &["*.example.org"], None);
    check("127.0.0.1", &["IP:127.0.0.1"], None);
    check("127.0.0.1", &["IP:127.0.0.2"], None);
    check("127.0.0.1", &["127.0.0.1"], None);
    check("127.0.0.1", &[], Some("127.0.0.1"));
    check("127.0.0.1", &["localhost"], Some("127.0.0.1"));
    check("127.0.0.1", &["IP:127.0.0.2"], Some("127.0.0.1"));
    check("127.0.0.1", &["*.0.0.1"], None);
    check("127.0.0.1", &["IP:::1"], None);
    check("::1", &["IP:::1"], None);
    check("::1", &["::1"], None);
    check("0:0:0:0:0:0:0:1", &["IP:::1"], None);
    check("::ffff:127.0.0.1", &["IP:127.0.0.1"], None);
    check("127.1", &["IP:127.0.0.1"], None);
    check("127.1", &["IP:127.0.0.2"], Some("127.1"));
    check("0x7f000001", &["IP:127.0.0.2"], Some("0x7f000001"));
    check("", &["IP:127.0.0.1"], None);
    check("", &["127.0.0.1"], Some("127.0.0.1"));
}

/// Each mode against each kind of server, with and without root certificates.
fn modes(directory: &Path, cases: &mut Vec<Case>) {
    let (root, other) = (Holder::root(|_| {}), Holder::root(|params| set_name(params, "other")));
    let ours = write(directory, "modes.crt", &root.pem);
    let theirs = write(directory, "modes-other.crt", &other.pem);
    let missing = directory.join("missing.crt").display().to_string();
    let crl = directory.join("missing.crl").display().to_string();
    let leaf = root.server(|_| {});
    let clients_leaf = root.server(|params| params.key_usages = vec![Use::KeyAgreement]);
    let kinds = [
        ("good", speaking(&[leaf])),
        ("without TLS", Server { tls: None, answer: Answer::LetsIn }),
        (
            "TLS 1.2 with a key that is not for signatures",
            Server::speaking(Speech { versions: &OLD, ..speech(&[clients_leaf]) }),
        ),
    ];
    for (kind, server) in kinds {
        for mode in ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] {
            for (roots, file) in [
                ("none", None),
                ("ours", Some(&ours)),
                ("theirs", Some(&theirs)),
                ("missing", Some(&missing)),
            ] {
                let named = file.map_or(String::new(), |file| format!(" sslrootcert={file}"));
                cases.push(Case {
                    name: format!("{kind} server, {mode}, roots {roots}"),
                    server: server.clone(),
                    conninfo: format!("host=localhost sslmode={mode}{named}"),
                    needs_new: false,
                });
            }
        }
        cases.push(Case {
            name: format!("{kind} server, list missing"),
            server: server.clone(),
            conninfo: format!("host=localhost sslmode=verify-full sslrootcert={ours} sslcrl={crl}"),
            needs_new: false,
        });
    }
}

/// The protocol that is agreed on inside TLS.
fn protocols(directory: &Path, cases: &mut Vec<Case>) {
    let root = Holder::root(|_| {});
    let file = write(directory, "protocols.crt", &root.pem);
    let leaf = root.server(|_| {});
    let speakers: [(&str, &'static [&'static [u8]]); 4] = [
        ("none", &[]),
        ("postgresql", POSTGRESQL),
        ("another", &[b"h2"]),
        ("another first", &[b"h2", b"postgresql"]),
    ];
    for (alpn, spoken) in speakers {
        let versions: [(&str, Versions); 2] = [("1.2", &OLD), ("1.3", &NEW)];
        for (version, versions) in versions {
            let spoken = Speech { alpn: spoken, versions, ..speech(std::slice::from_ref(&leaf)) };
            let server = Server::speaking(spoken);
            for negotiation in ["postgres", "direct"] {
                for mode in ["prefer", "require", "verify-full"] {
                    cases.push(Case {
                        name: format!("ALPN {alpn}, TLS {version}, {negotiation}, {mode}"),
                        server: server.clone(),
                        conninfo: format!(
                            "host=localhost sslmode={mode} sslrootcert={file} \
                             sslnegotiation={negotiation}"
                        ),
                        needs_new: true,
                    });
                }
            }
        }
    }
    for mode in ["require", "verify-full"] {
        cases.push(Case {
            name: format!("server without TLS, direct, {mode}"),
            server: Server { tls: None, answer: Answer::LetsIn },
            conninfo: format!(
                "host=localhost sslmode={mode} sslrootcert={file} sslnegotiation=direct"
            ),
            needs_new: true,
        });
    }
}

/// Versions of TLS that both sides put up with.
fn versions(directory: &Path, cases: &mut Vec<Case>) {
    let root = Holder::root(|_| {});
    let file = write(directory, "versions.crt", &root.pem);
    let leaf = root.server(|_| {});
    let servers: [(&str, Versions); 3] = [("1.2", &OLD), ("1.3", &NEW), ("both", &BOTH)];
    for (spoken, versions) in servers {
        let server = Server::speaking(Speech { versions, ..speech(std::slice::from_ref(&leaf)) });
        for (least, most) in [
            ("", "TLSv1.2"),
            ("TLSv1.3", ""),
            ("TLSv1.2", "TLSv1.2"),
            ("TLSv1.3", "TLSv1.3"),
            ("TLSv1.3", "TLSv1.2"),
            ("TLSv1", "TLSv1.1"),
            ("TLSv1", "TLSv1.3"),
            ("TLSv1.4", ""),
        ] {
            let bound = |keyword: &str, value: &str| match value {
                "" => String::new(),
                value => format!(" {keyword}={value}"),
            };
            cases.push(Case {
                name: format!("server with TLS {spoken}, from {least:?} to {most:?}"),
                server: server.clone(),
                conninfo: format!(
                    "host=localhost sslmode=verify-full sslrootcert={file}{}{}",
                    bound("ssl_min_protocol_version", least),
                    bound("ssl_max_protocol_version", most)
                ),
                needs_new: false,
            });
        }
    }
}

/// The client's own certificate.
fn client_certificates(directory: &Path, cases: &mut Vec<Case>) {
    let root = Holder::root(|_| {});
    let file = write(directory, "clients.crt", &root.pem);
    let leaf = root.server(|_| {});
    let client = root.server(|params| params.extended_key_usages = vec![Purpose::ClientAuth]);
    let stranger = root.server(|_| {});
    let certificate = write(directory, "client.crt", &client.pem);
    let private = |name: &str, holder: &Holder, mode: u32| {
        let path = write(directory, name, &holder.key.serialize_pem());
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&path, mode).expect("permissions");
        path
    };
    let key = private("client.key", &client, 0o600);
    let other_key = private("other.key", &stranger, 0o600);
    let open_key = private("open.key", &client, 0o644);
    let shown = [
        ("no certificate", String::new()),
        ("a certificate", format!(" sslcert={certificate} sslkey={key}")),
        ("another's key", format!(" sslcert={certificate} sslkey={other_key}")),
        ("an open key", format!(" sslcert={certificate} sslkey={open_key}")),
        ("a missing key", format!(" sslcert={certificate} sslkey={key}.missing")),
        ("a missing certificate", format!(" sslcert={certificate}.missing sslkey={key}")),
    ];
    for asks in [Asks::No, Asks::Optional, Asks::Demands] {
        let server = Server::speaking(Speech { asks, ..speech(std::slice::from_ref(&leaf)) });
        for mode in ["disable", "allow", "require"] {
            for (what, files) in &shown {
                cases.push(Case {
                    name: format!("server asks {asks:?}, sslcertmode {mode}, {what}"),
                    server: server.clone(),
                    conninfo: format!(
                        "host=localhost sslmode=verify-full sslrootcert={file} \
                         sslcertmode={mode}{files}"
                    ),
                    needs_new: true,
                });
            }
        }
    }
}
