//! The machine: a description of it, in words that say nothing about its owner; one core of it to measure on;
//! the size of its heap.
#![allow(unsafe_code)]

use std::fmt::Write as _;
use std::fs;

use anyhow::{Result, ensure};

/// The machine that a measurement depends on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The CPU's name for itself.
    pub cpu: String,
    /// Family, model and stepping, as numbers: virtual machines often hide the name.
    pub model: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Sizes of the caches that core 0 sees, innermost first.
    pub caches: Vec<String>,
    /// Bytes of memory.
    pub memory: u64,
    /// The kernel's version, without what a distributor or host adds.
    pub kernel: String,
    /// The kernel's setting for transparent huge pages.
    pub huge_pages: String,
    /// The vector extensions that engines may use.
    pub vectors: Vec<&'static str>,
}

impl Machine {
    /// The machine that this runs on.
    pub fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = info.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
            line.and_then(|line| line.split_once(':'))
                .map_or_else(String::new, |(_, value)| value.trim().to_owned())
        };
        let kernel = read("/proc/sys/kernel/osrelease");
        let huge = read("/sys/kernel/mm/transparent_hugepage/enabled");
        Self {
            cpu: Some(field("model name"))
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "unknown CPU".into()),
            model: format!(
                "family {} model {} stepping {}",
                field("cpu family"),
                field("model"),
                field("stepping")
            ),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            caches: caches(),
            memory: memory(),
            kernel: kernel
                .split(|c: char| !c.is_ascii_digit() && c != '.')
                .next()
                .unwrap_or_default()
                .to_owned(),
            huge_pages: huge.split(['[', ']']).nth(1).unwrap_or("unknown").to_owned(),
            vectors: vectors(),
        }
    }

    /// A name for its directory: the CPU and the number of cores.
    pub fn slug(&self) -> String {
        let words = self.cpu.to_lowercase();
        let words: Vec<_> =
            words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let model = self.model.split(' ').filter(|w| w.bytes().all(|b| b.is_ascii_digit()));
        let model: Vec<_> = model.take(2).collect();
        format!("{}-{}-{}-cores", words.join("-"), model.join("-"), self.cores)
    }

    /// One line a property.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        let gib = self.memory >> 30;
        for (name, value) in [
            ("cpu", &self.cpu),
            ("model", &self.model),
            ("cores", &self.cores.to_string()),
            ("caches", &self.caches.join(", ")),
            ("vectors", &self.vectors.join(", ")),
            ("memory", &format!("{gib} GiB")),
            ("kernel", &self.kernel),
            ("transparent huge pages", &self.huge_pages),
        ] {
            writeln!(text, "{name}: {value}").expect("a string takes all");
        }
        text
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn caches() -> Vec<String> {
    let levels = (0..).map_while(|index| {
        let of = |what: &str| read(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}"));
        let level = of("level");
        (!level.is_empty()).then(|| (of("type"), format!("L{level} {}", of("size"))))
    });
    levels.filter(|(kind, _)| kind != "Instruction").map(|(_, text)| text).collect()
}

fn memory() -> u64 {
    let info = read("/proc/meminfo");
    let line = info.lines().find(|line| line.starts_with("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

#[cfg(target_arch = "x86_64")]
fn vectors() -> Vec<&'static str> {
    let mut have = Vec::new();
    macro_rules! ask {
        ($($name:tt)*) => {
            $(if is_x86_feature_detected!($name) {
                have.push($name);
            })*
        };
    }
    ask!("sse4.2" "avx2" "avx512f" "avx512bw" "avx512vl" "avx512vbmi" "avx512vbmi2");
    have
}

#[cfg(not(target_arch = "x86_64"))]
fn vectors() -> Vec<&'static str> {
    Vec::new()
}

/// The core to measure on unless another is asked for: the last one, as interrupts and other programs tend to
/// the first.
pub fn last_core() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) - 1
}

/// Pins this thread to a core.
pub fn pin(core: usize) -> Result<()> {
    // SAFETY: all zeros is an empty set; `CPU_SET` ignores a core past its end; the call reads the set and
    // nothing else.
    let error = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    ensure!(error == 0, "core {core}: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Bytes that this process holds on the C heap, where the library can say.
#[cfg(target_env = "gnu")]
pub fn heap_bytes() -> u64 {
    // SAFETY: takes nothing and returns numbers.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

/// Bytes that this process holds on the C heap: not known here.
#[cfg(not(target_env = "gnu"))]
pub fn heap_bytes() -> u64 {
    0
}
