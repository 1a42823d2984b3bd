//! The guest's first root file system: init, the modules, a list that says in which order.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::cpio::Archive;
use crate::error::Error;
use crate::modules;
use crate::setup::Kernel;

/// Static, made by build.rs; empty where that was not possible.
static INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));

/// Archives older than this are removed when a new one is made.
const KEPT_UNUSED: Duration = Duration::from_secs(3600);

/// The archive for this kernel, from the cache if nothing it is made of has changed.
pub fn initrd(kernel: &Kernel) -> Result<PathBuf, Error> {
    if INIT.is_empty() {
        return Err(Error::Unavailable(
            "the guest's init could not be built (it needs Linux on x86-64 and a static C library)"
                .to_owned(),
        ));
    }
    let wanted = modules::BASE.iter().map(|module| format!("{module:?}"));
    let key = fnv1a([
        kernel.release.as_bytes(),
        INIT,
        wanted.collect::<String>().as_bytes(),
    ]);
    let path = kernel.dir.join(format!("initrd-{key:016x}.cpio"));
    if path.exists() {
        return Ok(path);
    }
    // Those of earlier builds of init are of no use any more, and each is some 10 MB; a young one may just be booting.
    for entry in fs::read_dir(&kernel.dir)
        .map_err(Error::io("reading the cache"))?
        .flatten()
    {
        let age = entry
            .metadata()
            .and_then(|data| data.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        let unused = age.is_some_and(|age| age > KEPT_UNUSED);
        if unused && entry.file_name().to_string_lossy().starts_with("initrd-") {
            let _ = fs::remove_file(entry.path());
        }
    }
    let unfinished = kernel
        .dir
        .join(format!("unfinished-{key:016x}-{}", std::process::id()));
    let doing = || Error::io(format!("writing {}", path.display()));
    fs::write(&unfinished, build(kernel)?).map_err(doing())?;
    fs::rename(&unfinished, &path).map_err(doing())?;
    Ok(path)
}

fn build(kernel: &Kernel) -> Result<Vec<u8>, Error> {
    let tree = modules::Tree::open(&kernel.modules)?;
    let mut archive = Archive::default();
    archive.directory("dev");
    archive.character_device("dev/console", 5, 1);
    archive.character_device("dev/null", 1, 3);
    archive.file("init", INIT);
    archive.directory("modules");
    let mut list = String::new();
    let mut done = BTreeSet::new();
    for wanted in modules::BASE {
        if wanted.optional && !tree.has(wanted.name) {
            continue;
        }
        for module in tree.closure(wanted.name, &mut done)? {
            let path = format!("modules/{}.ko", module.name);
            archive.file(&path, &module.bytes);
            let parameters = if module.name == wanted.name {
                wanted.parameters
            } else {
                ""
            };
            let _ = writeln!(list, "/{path} {parameters}");
        }
    }
    archive.file("modules/list", list.as_bytes());
    Ok(archive.finish())
}

/// The 64-bit FNV-1a hash of the pieces, each followed by a separator.
fn fnv1a<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let bytes = pieces.into_iter().flat_map(|piece| piece.iter().chain(&[0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_is_the_published_one() {
        // Offset basis for nothing; "a" then the separator differ from "a" alone, so check through a known pair:
        // FNV-1a of "foobar" is 85944171f73967e8; its last byte is fed by hand here.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        assert_eq!(fnv1a([b"foobar".as_slice()]), step(0x8594_4171_f739_67e8, 0xff));
        assert_eq!(fnv1a([]), 0xcbf2_9ce4_8422_2325);
        assert_ne!(fnv1a([b"a".as_slice(), b"bc"]), fnv1a([b"ab".as_slice(), b"c"]));
    }
}
