//! `docs/mcp.md`: every example of a client's configuration can be read by that client, and what it says is what the
//! server takes.

use anyhow::{Context as _, Result, ensure};
use harness::raw::Request;
use harness::{Cluster, ClusterOptions};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The server and the token as the page writes them.
const URL: &str = "http://127.0.0.1:7070/mcp";
const TOKEN: &str = "aba_…";

/// What a configuration tells its client.
#[derive(Debug)]
struct Told {
    client: String,
    url: String,
    /// The header that names the agent, as it is sent.
    authorization: String,
}

/// The code blocks of the page's part on clients, each with its language and the client that stands before it in bold.
fn examples(page: &str) -> Result<Vec<(String, String, String)>> {
    let clients = page.split("\n## ").find(|part| part.starts_with("Clients\n")).context("a part on clients")?;
    let (mut all, mut client) = (Vec::new(), String::new());
    let mut parts = clients.split("```");
    while let Some(text) = parts.next() {
        if let Some(bold) = text.rsplit("\n**").next().filter(|_| text.contains("\n**")) {
            bold.split("**").next().context("a name")?.clone_into(&mut client);
        }
        if let Some(code) = parts.next() {
            let (language, code) = code.split_once('\n').context("a block has lines")?;
            all.push((client.clone(), language.to_owned(), code.to_owned()));
        }
    }
    Ok(all)
}

fn told(client: &str, language: &str, code: &str) -> Result<Told> {
    let text = |value: &Value| value.as_str().map(str::to_owned).with_context(|| format!("{client}: {code}"));
    let (url, authorization) = match language {
        "json" => {
            let read: Value = serde_json::from_str(code).context("JSON")?;
            let server = [&read["mcp"]["askback"], &read["mcpServers"]["askback"]];
            let server = server.into_iter().find(|server| server.is_object()).context("a server")?;
            let url = [&server["url"], &server["httpUrl"]].into_iter().find(|url| url.is_string()).context("a URL")?;
            (text(url)?, text(&server["headers"]["Authorization"])?)
        }
        "toml" => {
            let read: Value = toml::from_str(code).context("TOML")?;
            let server = &read["mcp_servers"]["askback"];
            // The client makes the header of the variable.
            text(&server["bearer_token_env_var"])?;
            (text(&server["url"])?, format!("Bearer {TOKEN}"))
        }
        "yaml" => {
            let read: Value = serde_saphyr::from_str(code).context("YAML")?;
            let server = &read["extensions"]["askback"];
            ensure!(server["type"] == "streamable_http", "{code}");
            (text(&server["uri"])?, text(&server["headers"]["Authorization"])?)
        }
        "sh" => {
            let quoted: Vec<&str> = code.split('"').skip(1).step_by(2).collect();
            let [url, header] = quoted[..] else { anyhow::bail!("{code}") };
            let (name, value) = header.split_once(": ").context("a header")?;
            ensure!(code.contains("--transport http") && name == "Authorization", "{code}");
            (url.replace("$MCP", URL), value.replace("$TOKEN", TOKEN))
        }
        other => anyhow::bail!("{client} is configured in {other}"),
    };
    Ok(Told { client: client.to_owned(), url, authorization })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_example_of_a_configuration_reaches_the_server_as_its_agent() -> Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mcp.md");
    let page = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let examples = examples(&page)?;
    ensure!(examples.len() >= 5, "only {} examples were found", examples.len());
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let (_, token) = crate::mcp::session(&cluster).await?;
    let base = cluster.agent_url()?;
    for (client, language, code) in &examples {
        let told = told(client, language, code).with_context(|| format!("{client} ({language})"))?;
        let path = told.url.strip_prefix("http://127.0.0.1:7070").with_context(|| format!("{told:?}"))?;
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": told.client, "version": "1" },
        });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let send = async |authorization: &str| {
            let request = Request::new("POST", path).header("accept", "application/json, text/event-stream");
            request.header("authorization", authorization).json(&hello).send(&base).await
        };
        let reply = send(&told.authorization.replace(TOKEN, token.expose())).await?;
        let name = &reply.json()["result"]["serverInfo"]["name"];
        ensure!(reply.status == 200 && name.is_string(), "{told:?}: {} {}", reply.status, reply.json());
        // As it stands on the page it names nobody: what was taken was the token.
        ensure!(send(&told.authorization.replace(TOKEN, "aba_nobody")).await?.status == 401, "{told:?}");
    }
    Ok(())
}
