//! Sockets: TCP or of the file system, behind one type.

use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::sim::serve::{Address, Frame};

/// How long calling takes at most.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

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

    /// How long one read and one write wait; `None` for ever.
    pub fn set_timeouts(&self, read: Option<Duration>, write: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.set_read_timeout(read).and(s.set_write_timeout(write)),
            Self::Unix(s) => s.set_read_timeout(read).and(s.set_write_timeout(write)),
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

    /// Sends a frame without copying its data; gives up when that takes longer than `patience` in all. The write timeout of
    /// the socket has to be as short.
    pub fn send(&self, frame: &Frame, patience: Duration) -> io::Result<()> {
        let start = Instant::now();
        let mut head = frame.head.as_slice();
        let mut data = frame.data.as_slice();
        while !head.is_empty() || !data.is_empty() {
            let sent = match (&mut &*self).write_vectored(&[IoSlice::new(head), IoSlice::new(data)]) {
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
            if start.elapsed() > patience {
                return Err(io::ErrorKind::TimedOut.into());
            }
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
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens at an address.
    pub fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp { host, port } => TcpListener::bind((host.as_str(), *port)).map(Self::Tcp),
            Address::Unix(path) => {
                remove_stale(path)?;
                Ok(Self::Unix(UnixListener::bind(path)?, path.clone()))
            }
        }
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
            Self::Unix(_, path) => Address::Unix(path.clone()),
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
        Ok(match self {
            Self::Tcp(listener) => {
                let mut address = listener.local_addr()?;
                if address.ip().is_unspecified() {
                    address.set_ip(match address {
                        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
                    });
                }
                Waker::Tcp(address)
            }
            Self::Unix(_, path) => Waker::Unix(path.clone()),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Calls a listener so that it looks whether to go on.
#[derive(Debug)]
pub enum Waker {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Waker {
    /// Calls and hangs up.
    pub fn wake(&self) {
        // A listener that cannot be called has ended.
        match self {
            Self::Tcp(address) => drop(TcpStream::connect_timeout(address, CALL_TIMEOUT)),
            Self::Unix(path) => drop(UnixStream::connect(path)),
        }
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
