//! Where it was measured.

use serde::Serialize;
use std::fs;
use std::thread::available_parallelism;

/// What figures depend on.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    processor: String,
    cores: usize,
    memory_mib: Option<u64>,
    kernel: Option<String>,
    /// Postgres and nats-server, one line each.
    servers: Vec<String>,
    build: &'static str,
}

impl Machine {
    /// This machine, with the servers that were started.
    pub(super) fn here(servers: &[String]) -> Self {
        let of = |path: &str, name: &str| {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        let memory = of("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            processor: of("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: available_parallelism().map_or(1, usize::from),
            memory_mib: memory.map(|kib| kib / 1_024),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned()),
            servers: servers.iter().map(|line| line.split(" from ").next().unwrap_or(line).to_owned()).collect(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        let memory = self.memory_mib.map_or_else(String::new, |mib| format!(", {mib} MiB"));
        let kernel = self.kernel.as_ref().map_or_else(String::new, |kernel| format!(", kernel {kernel}"));
        vec![
            format!("{} cores of {}{memory}{kernel}", self.cores, self.processor),
            format!("{}; {} build", self.servers.join(", "), self.build),
        ]
    }
}

/// Memory of a process that lies in RAM, in bytes.
pub(super) fn resident_bytes(pid: u32) -> anyhow::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1_024).ok_or_else(|| anyhow::anyhow!("the system does not say how much memory {pid} has"))
}

/// Processor time that a process has used, in seconds.
pub(super) fn processor_seconds(pid: u32) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may have spaces; user and system time are the 14th and 15th field.
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    // Linux counts in hundredths of a second on every machine that this runs on.
    Ok(ticks / 100.0)
}
