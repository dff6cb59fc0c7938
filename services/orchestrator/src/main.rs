//! `askback-orchestrator`: the service binary.

use clap::Parser;
use kit::config::ServiceArgs;
use kit::shutdown::Shutdown;

/// Serves agents: holds their waits, gives them prompts and answers.
#[derive(Debug, Parser)]
#[command(name = "askback-orchestrator", version)]
struct Cli {
    #[command(flatten)]
    service: ServiceArgs,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Cli { service } = Cli::parse();
    kit::telemetry::init(orchestrator::SERVICE, service.log_format)?;
    let shutdown = Shutdown::new();
    shutdown.on_signals()?;
    orchestrator::run(service, shutdown).await
}
