//! `askback-respond-api`: the service binary.

use clap::Parser;
use kit::config::ServiceArgs;
use kit::shutdown::Shutdown;

/// Takes every command that people give.
#[derive(Debug, Parser)]
#[command(name = "askback-respond-api", version)]
struct Cli {
    #[command(flatten)]
    service: ServiceArgs,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Cli { service } = Cli::parse();
    kit::telemetry::init(respond_api::SERVICE, service.log_format)?;
    let shutdown = Shutdown::new();
    shutdown.on_signals()?;
    respond_api::run(service, shutdown).await
}
