//! A disk whose power can be cut, with an ext4 file system on it.
//!
//! What counts of a power cut is that everything that was not yet flushed is gone. There are two
//! ways to it:
//!
//! - [`PowerCutMethod::FileSystem`]: the file system, in a loop-mounted file, is shut down without a flush
//!   of its log. It models a machine that stops over a disk that keeps what it was given.
//! - [`PowerCutMethod::Block`]: the loop device lies on a FUSE file of ours, which sees every write and
//!   every flush; at the cut, what was written since the last completed flush is lost, kept or
//!   torn, block by block, as a seed decides. It models a disk with a volatile cache.
//!
//! With both, the kernel's own ext4 is in charge of files and directories, and replays its journal
//! when the power comes back. docs/power-cuts.md says what neither models.
//!
//! Mounts are made by a lab's init in its namespace, loop devices detach themselves when they are
//! not mounted any more, and the block device is a process of that init: with the init all is gone.
//! That process has mounts of its own, without the file systems on disks: the last process to leave
//! a namespace unmounts what is there, and waits for the disks below.
//!
//! Limits: Linux 6.5 or later (what a cut loses is counted by cachestat), as root.

mod cache;
mod cutting;
mod device;
mod error;
mod medium;
mod orders;
mod parts;
mod reader;
mod recorder;
mod recording;
mod serve;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use os::command::ProcessCommand;
use os::init::Init;
use os::loop_device::LoopDevice;
use os::user::SystemUser;
use rustix::io::Errno;
use rustix::process::Signal;

pub use cutting::PowerCutInProgress;
pub use error::Error;
use error::step;
pub use medium::{ImagePatch, copy_image, write_image};
use orders::Order;
pub use orders::{DiskError, DiskStatus, RequestFailure};
pub use parts::{check, check_file_system};
pub use reader::ImageReader;
pub use recorder::now_ns;
pub use recording::{DiskFile, RequestLog};
use serde::{Deserialize, Serialize};
pub use serve::serve;
use terms::FileSystem;

/// The properties of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskConfig {
    /// The size; the image takes as much of it as is in use.
    pub size_bytes: u64,
    /// The file system.
    pub file_system: FileSystem,
    /// The way in which it loses its power.
    pub method: PowerCutMethod,
}

/// A way in which a disk loses its power.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PowerCutMethod {
    /// The file system stops; what it has written before, it has written whole and in order.
    FileSystem,
    /// The device stops and forgets what it had not flushed, or a part of that.
    Block {
        /// Unit that it writes whole or not at all, in bytes: a power of two, 512 at least.
        sector_bytes: u32,
        /// True if it reports a flush without having done it.
        is_lying: bool,
        /// The most bytes that a log of its requests may take; none where it keeps no log.
        log_bytes: Option<u64>,
        /// The program that becomes the device.
        program: DiskProgram,
    },
    /// The device holds a state that a cut could have left of another one: an image that is only
    /// read, under a [`ImagePatch`]. What is written to it is gone with its power.
    State {
        /// The image.
        base: PathBuf,
        /// The program that becomes the device.
        program: DiskProgram,
    },
}

impl PowerCutMethod {
    /// True if a process of ours is the device.
    pub(crate) fn is_block(&self) -> bool {
        !matches!(self, PowerCutMethod::FileSystem)
    }
}

/// A program that calls [`serve`] with the arguments that follow its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskProgram {
    /// The executable.
    pub path: PathBuf,
    /// The arguments that lead it there.
    pub args: Vec<OsString>,
}

/// The cost of a cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerCutReport {
    /// Bytes that were written and not flushed: in the kernel's memory or in the disk's cache.
    pub unflushed_bytes: u64,
    /// How many of these bytes are lost.
    pub dropped_bytes: u64,
    /// Bytes that survived although nothing had promised it.
    pub kept_bytes: u64,
    /// Blocks of 4096 bytes of which a part is lost and a part survived.
    pub torn_blocks: u64,
}

impl PowerCutReport {
    /// The cost of this one and of another one in the same moment.
    pub fn and(self, other: PowerCutReport) -> PowerCutReport {
        PowerCutReport {
            unflushed_bytes: self.unflushed_bytes + other.unflushed_bytes,
            dropped_bytes: self.dropped_bytes + other.dropped_bytes,
            kept_bytes: self.kept_bytes + other.kept_bytes,
            torn_blocks: self.torn_blocks + other.torn_blocks,
        }
    }
}

/// A disk. Dropping it leaves its mounts to the init.
#[derive(Debug)]
pub struct FaultyDisk {
    config: DiskConfig,
    /// Holds the image and the places of the mounts.
    directory: PathBuf,
    /// The socket on which the process of a block disk listens.
    socket: PathBuf,
    process: Option<i32>,
    is_mounted: bool,
    /// The owner of the files on it.
    owner: SystemUser,
    /// The files when its log began.
    files_before: Vec<DiskFile>,
    /// The most bytes of the log that it is to keep from when it is switched on next.
    record_next: Option<u64>,
    /// The moment at which its log had begun.
    record_began_ns: u64,
}

impl FaultyDisk {
    /// A disk for the files of `owner`, which lives in `directory` and is not formatted yet. The process of
    /// a block disk listens at `socket`, in the directory below which all disks of its init live. Nobody but
    /// root can write to where these two are.
    pub fn new(config: DiskConfig, directory: &Path, socket: &Path, owner: SystemUser) -> Self {
        let (directory, socket) = (directory.to_owned(), socket.to_owned());
        let (process, is_mounted, files_before, record_next) = (None, false, Vec::new(), None);
        let record_began_ns = 0;
        Self {
            config,
            directory,
            socket,
            process,
            is_mounted,
            owner,
            files_before,
            record_next,
            record_began_ns,
        }
    }

    /// Mount point of its file system, as processes of the init see it.
    pub fn mount_point(&self) -> PathBuf {
        self.directory.join("mount")
    }

    /// The same place as this process can open it.
    pub fn outside(&self, init: &Init) -> Result<PathBuf, Error> {
        init.path_inside(&self.mount_point()).ok_or(Error::NoNamespace)
    }

    /// Gives it an empty file system, whatever it had before, and mounts that.
    ///
    /// # Errors
    /// What it lacks here, see [`check`]; [`Error::NoSpace`]; the system's.
    pub fn format(&mut self, init: &Init) -> Result<(), Error> {
        check(&self.config.method)?;
        parts::check_file_system(self.config.file_system)?;
        if init.isolation() != os::init::ProcessIsolation::Namespaces {
            return Err(Error::NoNamespace);
        }
        self.power_off(init)?;
        for place in [self.mount_point(), self.device_directory()] {
            fs::create_dir_all(&place).map_err(step("making the directory", &place))?;
        }
        // Whatever the umask says.
        let passage = fs::Permissions::from_mode(PASSAGE);
        fs::set_permissions(&self.directory, passage).map_err(step("opening", &self.directory))?;
        if let PowerCutMethod::State { .. } = self.config.method {
            return Ok(());
        }
        parts::make_image(&self.image(), self.config.size_bytes)?;
        let (kind, owner) = (self.config.file_system, self.owner);
        parts::make_file_system(init, kind, &self.image(), &self.directory, owner)?;
        self.power_on(init)?;
        // Not every mkfs can be told.
        let root = self.outside(init)?;
        let give = || std::os::unix::fs::chown(&root, Some(owner.uid), Some(owner.gid));
        give().map_err(step("giving away", &root))
    }

    /// Switches it on and mounts it: its journal is replayed. One that is on stays so.
    ///
    /// # Errors
    /// [`Error::FileSystemLost`]; what else the system refuses. It is off then.
    pub fn power_on(&mut self, init: &Init) -> Result<(), Error> {
        if self.is_mounted {
            return Ok(());
        }
        self.switch_on(init).inspect_err(|_| {
            // The first error is the one to tell.
            let _ = self.power_off(init);
        })
    }

    fn switch_on(&mut self, init: &Init) -> Result<(), Error> {
        let backing = match self.config.method.clone() {
            PowerCutMethod::FileSystem => self.image(),
            PowerCutMethod::Block { program, .. } | PowerCutMethod::State { program, .. } => {
                let pid = match self.process {
                    Some(pid) => self.tell(Order::Load).map(|_| pid)?,
                    None => self.start_device(init, &program)?,
                };
                self.begin_record()?;
                let file = self.device_directory().join(device::FILE);
                init.path_of(pid, &file).ok_or(Error::NoNamespace)?
            }
        };
        let file = File::options().read(true).write(true).open(&backing);
        let file = file.map_err(step("opening", &backing))?;
        let device = LoopDevice::attach(&file).map_err(parts::no_loop_device)?;
        let number = device.path().to_str().and_then(|path| path.strip_prefix("/dev/loop"));
        if let (true, Some(number)) = (self.config.method.is_block(), number)
            && let Ok(loop_device) = number.parse()
        {
            self.tell(Order::Attached { loop_device })?;
        }
        let kind = self.config.file_system;
        init.mount(device.path(), &self.mount_point(), kind.name(), mount_options(kind))
            .map_err(|source| parts::not_mounted(kind, device.path(), &self.image(), source))?;
        self.is_mounted = true;
        Ok(())
    }

    /// Makes sure that everything that was written so far survives a cut.
    pub fn sync(&self, init: &Init) -> Result<(), Error> {
        if let PowerCutMethod::State { .. } = self.config.method {
            // Nothing of it outlives its power.
            return Ok(());
        }
        let path = self.outside(init)?;
        let sync = || Ok(rustix::fs::syncfs(File::open(&path)?)?);
        sync().map_err(step("syncing", &path))?;
        match self.config.method {
            PowerCutMethod::FileSystem | PowerCutMethod::State { .. } => Ok(()),
            PowerCutMethod::Block { .. } => self.tell(Order::Sync).map(drop),
        }
    }

    /// Unmounts it, and ends the process that it was. What is in the kernel's memory is written
    /// before, unless the power was cut.
    ///
    /// # Errors
    /// The system's; `ResourceBusy` if a process still uses it.
    pub fn power_off(&mut self, init: &Init) -> Result<(), Error> {
        self.unmount(init)?;
        // Without a process, its power is off already.
        let Some(pid) = self.process.take() else { return Ok(()) };
        let device = self.device_directory();
        let end = || {
            init.signal(pid, Signal::KILL)?;
            init.wait(pid, UNMOUNT_TIMEOUT)
        };
        end().map(drop).map_err(step("removing the device", &device))
    }

    fn unmount(&mut self, init: &Init) -> Result<(), Error> {
        let mount_point = self.mount_point();
        if self.is_mounted {
            if let PowerCutMethod::State { .. } = self.config.method {
                // What is in memory would be written first, and then forgotten.
                let path = self.outside(init)?;
                let stop = || os::file_system::shut_down(File::open(&path)?);
                match self.can_be_shut_down() {
                    true => stop().map_err(step("stopping", &path))?,
                    false => self.tell(Order::Cut { seed: 0 }).map(drop)?,
                }
            }
            let deadline = Instant::now() + UNMOUNT_TIMEOUT;
            loop {
                match init.unmount(&mount_point, false) {
                    Ok(()) => break,
                    // Killed processes give back what they had open a moment later.
                    Err(error)
                        if error.kind() == io::ErrorKind::ResourceBusy
                            && Instant::now() < deadline =>
                    {
                        std::thread::sleep(PAUSE);
                    }
                    Err(error) => return Err(step("unmounting", mount_point)(error)),
                }
            }
            self.is_mounted = false;
        }
        Ok(())
    }

    /// The activity of a block disk since the power came on.
    pub fn status(&self) -> Result<DiskStatus, Error> {
        self.expect_block("asking")?;
        self.tell(Order::Status)
    }

    fn expect_block(&self, doing: &'static str) -> Result<(), Error> {
        match self.config.method {
            PowerCutMethod::FileSystem => Err(Error::NotABlockDisk { doing }),
            PowerCutMethod::Block { .. } | PowerCutMethod::State { .. } => Ok(()),
        }
    }

    /// True if its file system can be stopped as a whole; another one fails with its device.
    fn can_be_shut_down(&self) -> bool {
        self.config.file_system != FileSystem::Btrfs
    }

    fn image(&self) -> PathBuf {
        self.directory.join("image")
    }

    fn device_directory(&self) -> PathBuf {
        self.directory.join("device")
    }

    /// Starts its process, and returns the id that this has for the init.
    fn start_device(&mut self, init: &Init, program: &DiskProgram) -> Result<i32, Error> {
        let _ = fs::remove_file(&self.socket);
        let log = self.directory.join("device.log");
        let (mount_point, patch) = (self.device_directory(), self.patch_path());
        let (image, sector_bytes, is_lying, patch) = match &self.config.method {
            PowerCutMethod::State { base, .. } => (base.clone(), 512, false, Some(patch.as_path())),
            PowerCutMethod::Block { sector_bytes, is_lying, .. } => {
                (self.image(), *sector_bytes, *is_lying, None)
            }
            PowerCutMethod::FileSystem => (self.image(), 512, false, None),
        };
        let arguments = serve::Arguments {
            image: &image,
            mount_point: &mount_point,
            socket: &self.socket,
            sector_bytes,
            is_lying,
            patch,
        };
        // It works elsewhere than below the servers' directory: it does not die with them.
        let command = ProcessCommand::new(&program.path)
            .args(&program.args)
            .args(arguments.words())
            .directory("/")
            .stdout(os::command::ProcessOutput::File(log.clone()))
            .stderr(os::command::ProcessOutput::File(log.clone()));
        let started = init.spawn(&command).map_err(step("starting", &program.path));
        let pid = started?;
        self.process = Some(pid);
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match UnixStream::connect(&self.socket) {
                Ok(_) => return Ok(pid),
                Err(source) => {
                    let ended = init.exit(pid).map_err(step("waiting for", &program.path))?;
                    if ended.is_none() && Instant::now() < deadline {
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                    let how = ended.map_or_else(|| source.to_string(), |exit| exit.to_string());
                    // Without a log, the error names how the program ended alone.
                    let said = fs::read_to_string(&log).unwrap_or_default();
                    let said = format!("{how} {}", said.trim()).trim().to_owned();
                    let program = program.path.display().to_string();
                    return Err(Error::Program { program, purpose: "become a disk", said });
                }
            }
        }
    }

    fn tell(&self, order: Order) -> Result<DiskStatus, Error> {
        let malformed = || io::Error::from(Errno::PROTO);
        let ask = || {
            let mut line = String::new();
            let stream = UnixStream::connect(&self.socket)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            writeln!(&stream, "{order}")?;
            BufReader::new(&stream).read_line(&mut line)?;
            match line.trim().split_once(' ') {
                Some(("ok", status)) => status.parse().map_err(|_| malformed()),
                Some(("error", why)) => Err(io::Error::other(why.to_owned())),
                _ => Err(malformed()),
            }
        };
        ask().map_err(step("talking to the disk at", &self.socket))
    }
}

/// An error stops the file system instead of being passed over, and several states of one are mounted
/// at once.
fn mount_options(kind: FileSystem) -> &'static str {
    match kind {
        FileSystem::Ext4 => "errors=remount-ro",
        FileSystem::Ext4Writeback => "errors=remount-ro,data=writeback,noauto_da_alloc",
        FileSystem::Xfs => "nouuid",
        // Since Linux 6.7 the second one gets an identity of its own by itself.
        FileSystem::Btrfs => "",
    }
}

/// Directories that others pass on their way to their files, and cannot list.
const PASSAGE: u32 = 0o711;

const PAUSE: Duration = Duration::from_millis(2);
const START_TIMEOUT: Duration = Duration::from_secs(30);
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(30);

/// Settling writes all that a lying disk has kept to itself, and a log begins with a copy of the image.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
