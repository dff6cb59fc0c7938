//! `askback-projection`: the service binary.

use clap::Parser;
use kit::config::ServiceArgs;
use kit::shutdown::Shutdown;

/// Serves everything people read.
#[derive(Debug, Parser)]
#[command(name = "askback-projection", version)]
struct Cli {
    #[command(flatten)]
    service: ServiceArgs,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Cli { service } = Cli::parse();
    kit::telemetry::init(projection::SERVICE, service.log_format)?;
    let shutdown = Shutdown::new();
    shutdown.on_signals()?;
    projection::run(service, shutdown).await
}
