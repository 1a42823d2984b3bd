//! Files that are made for their owner only.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::libc;

/// Opens a file as `options` say. Where none is it is made, with mode 0600, but never at the end of a symbolic link: in a
/// directory that others write to, the link may be somebody else's. One to a file that is there is followed if it belongs to
/// the caller or to root.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let mut making = options.clone();
    making.create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    match making.open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {}
        outcome => return outcome,
    }
    let owner = std::fs::symlink_metadata(path)?.uid();
    if owner != 0 && owner != nix::unistd::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "a symbolic link of somebody else",
        ));
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;

    #[test]
    fn files_are_made_for_their_owner_and_links_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = OpenOptions::new();
        options.append(true);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let fresh = dir.path().join("fresh");
        open(&options, &fresh).unwrap();
        assert_eq!(mode(&fresh), 0o600);
        std::fs::set_permissions(&fresh, PermissionsExt::from_mode(0o644)).unwrap();
        open(&options, &fresh).unwrap();
        assert_eq!(mode(&fresh), 0o644, "what was there stays as it was");

        let (link, target) = (dir.path().join("link"), dir.path().join("target"));
        symlink(&target, &link).unwrap();
        assert_eq!(open(&options, &link).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!target.exists(), "nothing is made through a link");
        std::fs::write(&target, "").unwrap();
        open(&options, &link).unwrap();
        // Only root can make a link somebody else's.
        if lchown(&link, Some(65534), None).is_ok() {
            let error = open(&options, &link).unwrap_err();
            assert_eq!(error.to_string(), "a symbolic link of somebody else");
        }
    }
}
