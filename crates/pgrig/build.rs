//! Puts the studies of this repository into the program, so that an installed one needs no files
//! beside it: walks `studies/` and writes a table of their texts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let studies = manifest.join("../../studies").canonicalize()?;
    println!("cargo:rerun-if-changed={}", studies.display());
    let mut table = String::from("&[\n");
    for folder in sorted(&studies)?.into_iter().filter(|path| path.is_dir()) {
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        collect(&folder, "", &mut files)?;
        let _ = writeln!(table, "    ({:?}, &[", name(&folder));
        for (name, path) in files {
            println!("cargo:rerun-if-changed={}", path.display());
            let _ = writeln!(table, "        ({name:?}, include_str!({:?})),", path.display());
        }
        table.push_str("    ]),\n");
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("studies.rs"), table)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for path in sorted(folder)? {
        let inner = format!("{prefix}{}", name(&path));
        if path.is_dir() {
            collect(&path, &format!("{inner}/"), files)?;
        } else if !name(&path).starts_with('.') {
            files.push((inner, path));
        }
    }
    Ok(())
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
