//! Sockets: TCP or of the file system, behind one type.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};

use crate::sim::serve::{Address, Frame};

/// How long calling takes at most.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// What goes to a socket of the file system at one time: there each such piece may wait as long as the socket's time-out, in
/// one write of many pieces too.
const UNIX_PIECE_BYTES: usize = 32 << 10;

/// One connection.
#[derive(Debug)]
pub enum Link {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Link {
    /// Calls an address.
    pub fn call(address: &Address) -> io::Result<Self> {
        let link = match address {
            Address::Tcp { host, port } => {
                let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
                let mut found = None;
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CALL_TIMEOUT) {
                        Ok(stream) => {
                            found = Some(stream);
                            break;
                        }
                        Err(error) => last = error,
                    }
                }
                Self::Tcp(found.ok_or(last)?)
            }
            Address::Unix(path) => Self::Unix(UnixStream::connect(path)?),
        };
        link.hurry();
        Ok(link)
    }

    /// Small answers are not held back.
    fn hurry(&self) {
        if let Self::Tcp(stream) = self {
            // A socket that cannot do that still works.
            let _ = stream.set_nodelay(true);
        }
    }

    /// How long one read waits; `None` for ever.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.set_read_timeout(limit),
            Self::Unix(s) => s.set_read_timeout(limit),
        }
    }

    fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.set_write_timeout(limit),
            Self::Unix(s) => s.set_write_timeout(limit),
        }
    }

    /// A second handle of the same connection.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(s) => Self::Tcp(s.try_clone()?),
            Self::Unix(s) => Self::Unix(s.try_clone()?),
        })
    }

    /// Ends it, or one direction of it, for every handle.
    pub fn shutdown(&self, how: Shutdown) {
        // It may have ended by itself.
        let _ = match self {
            Self::Tcp(s) => s.shutdown(how),
            Self::Unix(s) => s.shutdown(how),
        };
    }

    /// The other end, for people.
    pub fn peer(&self) -> String {
        match self {
            Self::Tcp(s) => s
                .peer_addr()
                .map_or_else(|_| "a host".to_owned(), |a| a.to_string()),
            Self::Unix(_) => "a local process".to_owned(),
        }
    }

    /// Sends a frame without copying its data; gives up at `deadline`, in however small pieces the peer reads.
    pub fn send(&self, frame: &Frame, deadline: Instant) -> io::Result<()> {
        let piece_bytes = match self {
            Self::Tcp(_) => usize::MAX,
            Self::Unix(_) => UNIX_PIECE_BYTES,
        };
        let piece = |rest: &[u8], taken: usize| rest.len().min(piece_bytes.saturating_sub(taken));
        let mut head = frame.head.as_slice();
        let mut data = frame.data.as_slice();
        while !head.is_empty() || !data.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.set_write_timeout(Some(left))?;
            let first = head.get(..piece(head, 0)).unwrap_or_default();
            let second = data.get(..piece(data, first.len())).unwrap_or_default();
            let sent = match (&mut &*self).write_vectored(&[IoSlice::new(first), IoSlice::new(second)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            };
            let of_head = sent.min(head.len());
            head = head.get(of_head..).unwrap_or_default();
            data = data.get(sent - of_head..).unwrap_or_default();
        }
        Ok(())
    }
}

impl Read for &Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Link::Tcp(s) => (&mut &*s).read(buffer),
            Link::Unix(s) => (&mut &*s).read(buffer),
        }
    }
}

impl Write for &Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Link::Tcp(s) => (&mut &*s).write(bytes),
            Link::Unix(s) => (&mut &*s).write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Link::Tcp(s) => (&mut &*s).write_vectored(slices),
            Link::Unix(s) => (&mut &*s).write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where connections come in. A socket in the file system is removed with it.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Place),
}

/// A socket in the file system, and which one it is: another may be at its path later.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Place {
    fn at(path: &Path) -> io::Result<Self> {
        let found = std::fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }
}

impl Listener {
    /// Listens at an address.
    pub fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp { host, port } => TcpListener::bind((host.as_str(), *port)).map(Self::Tcp),
            Address::Unix(path) => {
                remove_stale(path)?;
                let listener = UnixListener::bind(path)?;
                let listener = Self::Unix(listener, Place::at(path)?);
                listener.close_to_others(path)?;
                Ok(listener)
            }
        }
    }

    /// Lets only the owner call from now on: mode 0600. The socket has the mode of the umask until then, and listens already,
    /// so whoever has called by now is hung up on. A private umask would do without that, but it is of the whole process:
    /// directories that other threads make would be without the right to enter them.
    fn close_to_others(&self, path: &Path) -> io::Result<()> {
        let Self::Unix(listener, _) = self else {
            return Ok(());
        };
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        fchmodat(AT_FDCWD, path, mode, FchmodatFlags::NoFollowSymlink)?;
        listener.set_nonblocking(true)?;
        while listener.accept().is_ok() {}
        listener.set_nonblocking(false)
    }

    /// The address with the port that the system chose.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Tcp(listener) => {
                let address = listener.local_addr()?;
                Address::Tcp {
                    host: address.ip().to_string(),
                    port: address.port(),
                }
            }
            Self::Unix(_, place) => Address::Unix(place.path.clone()),
        })
    }

    /// Whether only this machine can call.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(listener) => listener.local_addr().is_ok_and(|a| a.ip().is_loopback()),
            Self::Unix(..) => true,
        }
    }

    /// Waits for a connection.
    pub fn accept(&self) -> io::Result<Link> {
        let link = match self {
            Self::Tcp(listener) => Link::Tcp(listener.accept()?.0),
            Self::Unix(listener, _) => Link::Unix(listener.accept()?.0),
        };
        link.hurry();
        Ok(link)
    }

    /// What wakes a thread that waits in [`Listener::accept`].
    pub fn waker(&self) -> io::Result<Waker> {
        Ok(Waker(match self {
            Self::Tcp(listener) => Link::Tcp(OwnedFd::from(listener.try_clone()?).into()),
            Self::Unix(listener, _) => Link::Unix(OwnedFd::from(listener.try_clone()?).into()),
        }))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, place) = self
            && let Ok(found) = Place::at(&place.path)
            && (found.device, found.inode) == (place.device, place.inode)
        {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(&place.path);
        }
    }
}

/// Ends a listener, wherever its socket in the file system is by now: its own descriptor once more, under the type that has
/// shutdown(2).
#[derive(Debug)]
pub struct Waker(Link);

impl Waker {
    /// Nobody is accepted any more; who waits for that returns.
    pub fn wake(&self) {
        self.0.shutdown(Shutdown::Both);
    }
}

/// Removes a socket that nobody listens at any more; everything else stays.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file that is no socket is there",
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}
