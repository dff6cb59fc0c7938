//! Free ports.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, bail};

use crate::unique;

/// First port that is tried. The range lies under the one from which the kernel takes the local ports of outgoing
/// connections (32768 and up on Linux), so a server that is down for a moment finds its port free again.
const FIRST_PORT: u16 = 20_000;
const PORT_COUNT: u16 = 12_000;
const TRIES: u32 = 200;

/// Returns a TCP port on 127.0.0.1 that nobody listened on a moment ago.
///
/// It is not reserved: who binds it must be ready to lose the race and ask again. A server that binds port 0 itself
/// is better off where that is possible.
///
/// # Errors
/// When 200 ports in a row are taken.
pub fn free_port() -> Result<u16> {
    for _ in 0..TRIES {
        let port = FIRST_PORT + unique::number_below(PORT_COUNT);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free TCP port on 127.0.0.1 after {TRIES} tries between {FIRST_PORT} and {}", FIRST_PORT + PORT_COUNT)
}
