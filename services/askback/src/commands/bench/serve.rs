//! One service as the process that is measured: what its own program does, from this program.

use clap::{Args, ValueEnum};
use kit::config::ServiceArgs;
use kit::shutdown::Shutdown;

/// Which service, and how it is told everything else.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    #[arg(value_enum)]
    service: Service,
    #[command(flatten)]
    args: ServiceArgs,
}

/// The services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Service {
    /// Takes commands of people.
    RespondApi,
    /// Serves agents.
    Orchestrator,
    /// Serves readers.
    Projection,
}

impl Service {
    /// Its name on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::RespondApi => respond_api::SERVICE,
            Self::Orchestrator => orchestrator::SERVICE,
            Self::Projection => projection::SERVICE,
        }
    }
}

pub(super) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    let ServeArgs { service, args } = args;
    kit::telemetry::init(service.name(), args.log_format)?;
    let shutdown = Shutdown::new();
    shutdown.on_signals()?;
    match service {
        Service::RespondApi => respond_api::run(args, shutdown).await,
        Service::Orchestrator => orchestrator::run(args, shutdown).await,
        Service::Projection => projection::run(args, shutdown).await,
    }
}
