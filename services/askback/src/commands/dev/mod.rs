//! `askback dev`: everything in one process, for a laptop.

mod agent;
mod demo;
mod folder;
mod services;
mod token;

use crate::connection::DATA_DIR;
use crate::database::{connect_as, store_failure};
use crate::failure::Failure;
use crate::output::Output;
use agent::OwnAgent;
use clap::Args;
use demo::Demo;
use devstack::Servers;
use folder::Folder;
use kit::config::{AgentProfiles, ClientLimits, LogFormat, Times};
use kit::shutdown::Shutdown;
use orchestrator::DemoSink;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use services::{Services, Settings};
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use store::Store;
use tokio::net::TcpListener;
use wire::{Client, Secret};

/// Run everything in this one process: it finds or starts Postgres and NATS, and keeps its data in a folder.
#[derive(Clone, Debug, Args)]
pub(crate) struct DevArgs {
    /// The folder for data, token and URL.
    #[arg(long, default_value = DATA_DIR)]
    data_dir: PathBuf,
    /// The port to listen on, on this machine only; 0 takes a free one.
    #[arg(long, default_value_t = 7070)]
    port: u16,
    /// Make a workspace with an agent that asks, to answer it.
    #[arg(long)]
    demo: bool,
    /// The file of agent profiles; the profiles `mailbox` and `demo` when absent.
    #[arg(long, env = "ASKBACK_AGENTS")]
    agents: Option<PathBuf>,
    /// How log lines look.
    #[arg(long, env = "ASKBACK_LOG_FORMAT", value_enum, default_value = "auto")]
    log_format: LogFormat,
    /// MCP clients that end a tool call after a fixed time, as `name=seconds,…`: their calls return before it.
    #[arg(
        long,
        env = "ASKBACK_CLIENT_LIMITS",
        default_value = "codex-acp=120,codex=300,goose=300,gemini=600,qwen=600"
    )]
    client_limits: ClientLimits,

    /// How often a prompt that its runner refused is tried again; then its message is held until a person releases it.
    #[arg(long, env = "ASKBACK_DISPATCH_RETRIES", default_value_t = 3)]
    dispatch_retries: u32,
    /// The times of the protocols.
    #[command(flatten)]
    times: Times,
}

/// What is said once all is ready.
#[derive(Debug, Serialize)]
struct Started {
    url: String,
    token: Secret,
    data_dir: PathBuf,
    servers: Vec<String>,
    demo: Option<Demo>,
    agent: Option<OwnAgent>,
}

pub(crate) async fn run(args: &DevArgs, out: &mut Output) -> Result<(), Failure> {
    let config = |why: kit::config::ConfigError| Failure::own("config", why.to_string());
    args.times.validate().map_err(config)?;
    let agents = args.agents.as_deref().filter(|path| !path.as_os_str().is_empty());
    let profiles = agents.map_or_else(|| Ok(AgentProfiles::default()), AgentProfiles::read).map_err(config)?;
    kit::telemetry::init("dev", args.log_format).map_err(|why| Failure::own("config", why.to_string()))?;
    let shutdown = Shutdown::new();
    shutdown.on_signals().map_err(|why| Failure::own("signals", why.to_string()))?;
    let folder = Folder::open(&args.data_dir)?;
    let listener = listen(args.port).await?;
    let servers = Servers::start(devstack::Options::dev(folder.path()))
        .await
        .map_err(|why| Failure::own("servers", format!("{why:#}")))?;
    let outcome = Box::pin(serve(args, profiles, &folder, &servers, listener, shutdown, out)).await;
    let stopped = servers.stop().await.map_err(|why| Failure::own("servers", format!("{why:#}")));
    outcome.and(stopped)
}

/// Taken before anything is started: a second `askback dev` finds out at once.
async fn listen(port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|why| {
        Failure::own("listener", format!("127.0.0.1:{port}: {why}"))
            .with_hint("give another port with --port; 0 takes a free one")
    })
}

async fn serve(
    args: &DevArgs,
    profiles: AgentProfiles,
    folder: &Folder,
    servers: &Servers,
    listener: TcpListener,
    shutdown: Shutdown,
    out: &mut Output,
) -> Result<(), Failure> {
    let missing = |what: &str| Failure::own("servers", format!("{what} was not started"));
    let database_url = servers.database_url().ok_or_else(|| missing("Postgres"))?;
    let nats_url = servers.nats_url().ok_or_else(|| missing("NATS"))?.to_owned();
    Store::migrate(database_url).await.map_err(|error| store_failure(&error))?;
    folder.write("database-url", database_url)?;
    let store = connect_as("askback-dev", database_url, 64).await?;
    let token = token::ensure(folder, &store).await?;
    let bound = listener.local_addr().map_err(|why| Failure::own("listener", why.to_string()))?;
    let url = format!("http://{bound}");
    // Standard output of a program that reads a document holds that document alone.
    let demo_sink = if out.is_json() { DemoSink::new(|line| eprintln!("{line}")) } else { DemoSink::stdout() };
    let place = Place { folder, servers, url: url.clone(), store: store.clone(), profiles: profiles.clone() };
    let settings = Settings {
        store,
        nats_url,
        url: url.clone(),
        times: args.times,
        client_limits: args.client_limits.clone(),
        dispatch_retries: args.dispatch_retries,
        profiles,
        demo_sink,
    };
    let services = Services::start(settings, listener, shutdown.clone()).await?;
    folder.write("url", &url)?;
    let welcome = if services.ready().await { welcome(args, place, &token, out).await } else { Ok(()) };
    if welcome.is_err() {
        shutdown.request();
    }
    let ended = services.end().await;
    welcome.and(ended)
}

/// Where everything is.
struct Place<'a> {
    folder: &'a Folder,
    servers: &'a Servers,
    url: String,
    store: Store,
    profiles: AgentProfiles,
}

/// Says where everything is, and makes the demo and a session for an agent of one's own.
async fn welcome(args: &DevArgs, place: Place<'_>, token: &SecretString, out: &mut Output) -> Result<(), Failure> {
    let Place { folder, servers, url, store, profiles } = place;
    let token = Secret::new(token.expose_secret());
    let client = Client::new(&url, Some(&token))?;
    let demo = if args.demo { Some(demo::ensure(folder, &client).await?) } else { None };
    let agent = agent::ensure(folder, &store, &profiles, &client, &url).await?;
    let data_dir = folder.path().to_owned();
    let started = Started { url, token, data_dir, servers: servers.found().to_vec(), demo, agent };
    out.show(&started, write)?;
    Ok(())
}

fn write(out: &mut Output, started: &Started) -> io::Result<()> {
    for server in &started.servers {
        out.text(server)?;
    }
    out.text("")?;
    out.text("Askback is ready. Ctrl-C ends it; the data stays.")?;
    out.fields(&[
        ("  url", started.url.clone()),
        ("  token", started.token.expose().to_owned()),
        ("  data", started.data_dir.display().to_string()),
    ])?;
    out.text("")?;
    if let Some(OwnAgent { mcp_url, token, .. }) = &started.agent {
        out.text(
            "Let an agent of your own ask: give its MCP client this URL and token (docs/mcp.md has more clients):",
        )?;
        out.fields(&[("  mcp", mcp_url.clone()), ("  token", token.expose().to_owned())])?;
        let header = format!("--header \"Authorization: Bearer {}\"", token.expose());
        out.text(&format!("  claude mcp add --transport http askback {mcp_url} {header}"))?;
        out.text("")?;
    }
    let command = command(started);
    if started.demo.is_some() {
        out.text("The demo agent has asked you something. Answer from another terminal, in this folder:")?;
        out.text(&format!("  {command} answer"))
    } else {
        out.text("See what agents ask, from another terminal, in this folder:")?;
        out.text(&format!("  {command} inbox"))
    }
}

/// How this program is called from here, with what it cannot find by itself.
fn command(started: &Started) -> String {
    let here = std::env::current_dir().ok();
    let program = std::env::current_exe().ok();
    let program = program.as_deref().map_or_else(
        || "askback".to_owned(),
        |program| match here.as_deref().and_then(|here| program.strip_prefix(here).ok()) {
            Some(near) => format!("./{}", near.display()),
            None => "askback".to_owned(),
        },
    );
    let default = here.is_some_and(|here| here.join(DATA_DIR) == here.join(&started.data_dir));
    if default {
        program
    } else {
        let dir = started.data_dir.display();
        format!("ASKBACK_URL=$(cat {dir}/url) ASKBACK_TOKEN=$(cat {dir}/token) {program}")
    }
}
