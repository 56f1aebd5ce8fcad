//! An SQLite file layer that hands everything on to the default one and notes, in order, what changed on the disk.
//! From such notes `disk` builds the disk as it could be had the power gone.
//!
//! A test adds its own marks to the same log, so that what a program said can be laid beside what the disk had
//! been told by then. Shared memory is not noted: it does not survive the power.
//!
//! Instead of wrapping whole files, it lets the default layer open them and then exchanges their table of functions
//! for a copy in which four are ours. The rest (reading, locks, shared memory) stays the default layer's.

#![allow(unsafe_code, reason = "a file layer of SQLite is a table of C functions that get raw pointers")]

mod disk;

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

pub(crate) use disk::Disk;
use longhaul_journal::Head;
use rusqlite::ffi::{self, sqlite3_file, sqlite3_filename, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

/// A disk takes its time. Without this, an answer that did not wait for the sync might still come after it.
const SYNC_TAKES: Duration = Duration::from_micros(300);

/// One line of the log.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// Something happened to the file of this name.
    File(String, Change),
    /// The test's own mark: the append of this number had been answered, and this was the head that it made.
    Acknowledged(usize, Head),
}

/// What happened to a file.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// It is there, empty.
    Created,
    /// Bytes were written from an offset on.
    Written(usize, Vec<u8>),
    /// It was cut, or made longer, to a size.
    Truncated(usize),
    /// A sync has returned.
    Synced,
    /// A sync was refused, and nobody knows what of the writes before it reached the disk.
    SyncRefused,
    /// It is gone.
    Deleted,
    /// The test's own mark: it was replaced as a whole, durably, by something other than SQLite.
    Replaced(Vec<u8>),
}

/// What can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Write,
    Sync,
}

/// Answers a call with a code of SQLite before it is made; anything but `SQLITE_OK` refuses it.
pub(crate) type Refuse = Box<dyn FnMut(Call) -> c_int + Send>;

/// The log of one file layer, which SQLite knows by a name of its own.
pub(crate) struct Recorder {
    pub(crate) vfs: String,
    log: Mutex<Vec<Event>>,
    refuse: Mutex<Refuse>,
}

/// Our file layer, as SQLite sees it, with what we need beside it.
#[repr(C)]
struct Layer {
    vfs: sqlite3_vfs,
    below: *mut sqlite3_vfs,
    recorder: &'static Recorder,
}

/// The functions of one open file, as SQLite sees them, with what we need beside them.
#[repr(C)]
struct OpenFile {
    methods: sqlite3_io_methods,
    below: *const sqlite3_io_methods,
    name: String,
    recorder: &'static Recorder,
}

impl Recorder {
    /// Makes a file layer known to SQLite. It stays known until the process ends: a connection may outlive the
    /// test that opened it.
    pub(crate) fn install(refuse: Refuse) -> &'static Self {
        // Held to the end, because registering one layer changes the default one, which another test may copy.
        static INSTALLED: Mutex<u64> = Mutex::new(0);
        let mut installed = INSTALLED.lock().expect("no test fails to install its layer");
        *installed += 1;
        let vfs = format!("recording-{installed}");
        let name = CString::new(vfs.clone()).expect("it was just made, without a zero in it").into_raw();
        let recorder: &'static Self =
            Box::leak(Box::new(Self { vfs, log: Mutex::default(), refuse: Mutex::new(refuse) }));
        // SAFETY: null asks for the default layer, which is there for as long as the process is.
        let (below, default) = unsafe {
            let below = ffi::sqlite3_vfs_find(std::ptr::null());
            assert!(!below.is_null(), "SQLite has a default file layer");
            (below, *below)
        };
        let vfs = sqlite3_vfs {
            pNext: std::ptr::null_mut(),
            zName: name,
            xOpen: Some(open),
            xDelete: Some(delete),
            ..default
        };
        let layer = Box::into_raw(Box::new(Layer { vfs, below, recorder }));
        // SAFETY: the layer and its name are never freed. The functions that were copied from the default layer
        // use nothing of the layer that they are given but `pAppData` and `mxPathname`, which were copied too.
        let registered = unsafe { ffi::sqlite3_vfs_register(layer.cast(), 0) };
        assert_eq!(registered, ffi::SQLITE_OK, "the file layer could not be registered");
        recorder
    }

    /// Adds to the log.
    pub(crate) fn note(&self, event: Event) {
        self.log.lock().expect("nobody panics who holds it").push(event);
    }

    /// The log up to now.
    pub(crate) fn log(&self) -> Vec<Event> {
        self.log.lock().expect("nobody panics who holds it").clone()
    }

    fn verdict(&self, call: Call) -> c_int {
        self.refuse.lock().expect("it does not panic")(call)
    }
}

impl OpenFile {
    /// Notes a change if it came about, and hands the default layer's answer on.
    fn note(&self, answer: c_int, change: impl FnOnce() -> Change) -> c_int {
        if answer == ffi::SQLITE_OK {
            self.recorder.note(Event::File(self.name.clone(), change()));
        }
        answer
    }
}

/// # Safety
/// The path ends with a zero.
unsafe fn path_of<'a>(path: *const c_char) -> &'a Path {
    // SAFETY: as the caller promises.
    Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// # Safety
/// The file was opened by [`open`] and not yet closed, so that its functions are an [`OpenFile`].
unsafe fn opened<'a>(file: *mut sqlite3_file) -> &'a OpenFile {
    // SAFETY: as the caller promises; `methods` is the first field, so both begin at the same place.
    unsafe { &*(*file).pMethods.cast::<OpenFile>() }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    path: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls this with the layer that was registered, which is a `Layer`. The fields are copied one
    // by one because SQLite changes `vfs.pNext` whenever another layer is registered.
    let (below, recorder) = unsafe { ((*vfs.cast::<Layer>()).below, (*vfs.cast::<Layer>()).recorder) };
    // SAFETY: a path that SQLite gives ends with a zero.
    let named = (!path.is_null()).then(|| unsafe { path_of(path) });
    let was_there = named.is_some_and(Path::exists);
    // SAFETY: the default layer gets what SQLite gave to us, and the space for a file is what it asked for.
    let answer = unsafe {
        let open = (*below).xOpen.expect("every file layer opens files");
        open(below, path, file, flags, out_flags)
    };
    // A file without a name ends with its process, so it is of no interest here.
    let (ffi::SQLITE_OK, Some(named)) = (answer, named) else { return answer };
    // SAFETY: the default layer opened the file, so it has set its table, which is constant.
    let (below, table) = unsafe { ((*file).pMethods, *(*file).pMethods) };
    let methods = sqlite3_io_methods {
        xClose: Some(close),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        ..table
    };
    let opened = Box::new(OpenFile { methods, below, name: name_of(named), recorder });
    if !was_there {
        opened.note(answer, || Change::Created);
    }
    // SAFETY: the table lives until `close` takes it back. The default layer never looks at a file's table itself.
    unsafe { (*file).pMethods = Box::into_raw(opened).cast() };
    answer
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, path: *const c_char, sync_folder: c_int) -> c_int {
    // SAFETY: as in `open`.
    let (answer, recorder, path) = unsafe {
        let layer = vfs.cast::<Layer>();
        let delete = (*(*layer).below).xDelete.expect("every file layer deletes files");
        (delete((*layer).below, path, sync_folder), (*layer).recorder, path_of(path))
    };
    if answer == ffi::SQLITE_OK {
        recorder.note(Event::File(name_of(path), Change::Deleted));
    }
    answer
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once, and uses it no more; so the table that `open` made can be taken back.
    unsafe {
        let opened = Box::from_raw((*file).pMethods.cast::<OpenFile>().cast_mut());
        (*file).pMethods = opened.below;
        let close = (*opened.below).xClose.expect("every file can be closed");
        close(file)
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls this for files that `open` opened.
    let opened = unsafe { opened(file) };
    let verdict = opened.recorder.verdict(Call::Write);
    if verdict != ffi::SQLITE_OK {
        return verdict;
    }
    // SAFETY: the default layer gets what SQLite gave to us.
    let answer = unsafe {
        let write = (*opened.below).xWrite.expect("every file can be written");
        write(file, bytes, length, offset)
    };
    // SAFETY: SQLite wants these bytes written, so they are there.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size(length.into())) };
    opened.note(answer, || Change::Written(size(offset), bytes.to_vec()))
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, to: sqlite3_int64) -> c_int {
    // SAFETY: SQLite calls this for files that `open` opened, and the default layer gets what it gave to us.
    let (opened, answer) = unsafe {
        let truncate = (*opened(file).below).xTruncate.expect("every file can be truncated");
        (opened(file), truncate(file, to))
    };
    opened.note(answer, || Change::Truncated(size(to)))
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls this for files that `open` opened.
    let opened = unsafe { opened(file) };
    std::thread::sleep(SYNC_TAKES);
    let verdict = opened.recorder.verdict(Call::Sync);
    if verdict != ffi::SQLITE_OK {
        opened.note(ffi::SQLITE_OK, || Change::SyncRefused);
        return verdict;
    }
    // SAFETY: the default layer gets what SQLite gave to us.
    let answer = unsafe {
        let sync = (*opened.below).xSync.expect("every file can be synced");
        sync(file, flags)
    };
    opened.note(answer, || Change::Synced)
}

fn size(number: sqlite3_int64) -> usize {
    usize::try_from(number).expect("SQLite gives no negative sizes")
}
