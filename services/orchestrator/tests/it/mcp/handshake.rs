//! What is said before and beside calls of tools.

use super::raw::Raw;
use crate::support::World;
use anyhow::Result;
use serde_json::{Value, json};

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

#[tokio::test]
async fn a_version_is_agreed_on_and_no_session_is_handed_out() -> Result<()> {
    let world = World::new().await?;
    let raw = Raw::alone(&world, &world.instance("one").await?).await?;
    for (wanted, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2031-01-01", "2025-11-25"),
    ] {
        let params = json!({ "protocolVersion": wanted, "capabilities": {}, "clientInfo": { "name": "x" } });
        let response = raw.posting(&request("initialize", &params)).send().await?;
        assert_eq!(response.status(), 200);
        assert!(response.headers().get("mcp-session-id").is_none());
        let answer: Value = response.json().await?;
        assert_eq!(answer["id"], 7);
        assert_eq!(answer["result"]["protocolVersion"], agreed);
        assert_eq!(answer["result"]["serverInfo"]["name"], "askback");
        assert!(answer["result"]["capabilities"]["tools"].is_object());
    }
    let (status, _) = raw.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
    assert_eq!(status, 202);
    let ping = raw.posting(&request("ping", &json!({}))).header("mcp-session-id", "of-somebody").send().await?;
    assert_eq!(ping.json::<Value>().await?["result"], json!({}));
    Ok(())
}

#[tokio::test]
async fn tools_are_listed() -> Result<()> {
    let world = World::new().await?;
    let raw = Raw::alone(&world, &world.instance("one").await?).await?;
    let (_, answer) = raw.post(&request("tools/list", &json!({}))).await?;
    let names: Vec<_> = answer["result"]["tools"].as_array().into_iter().flatten().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["ask_person", "collect_answers"]);
    Ok(())
}

#[tokio::test]
async fn what_is_not_served_is_refused_in_the_words_of_the_protocol() -> Result<()> {
    let world = World::new().await?;
    let raw = Raw::alone(&world, &world.instance("one").await?).await?;
    let code = async |message: Value| {
        let (status, answer) = raw.post(&message).await?;
        anyhow::Ok((status, answer["error"]["code"].as_i64().unwrap_or(0)))
    };
    assert_eq!(code(request("server/discover", &json!({}))).await?, (400, -32_601), "clients fall back on this");
    assert_eq!(code(request("prompts/list", &json!({}))).await?, (200, -32_601));
    assert_eq!(code(json!([request("ping", &json!({}))])).await?, (400, -32_600));
    assert_eq!(code(request("tools/call", &json!({ "name": "rm" }))).await?, (200, -32_602));
    assert_eq!(code(request("tools/call", &json!({ "name": "ask_person", "arguments": 3 }))).await?, (200, -32_602));
    let ping = request("ping", &json!({}));
    let spoken = raw.posting(&ping).header("mcp-protocol-version", "2031-01-01").send().await?;
    assert_eq!(spoken.status(), 400);
    let spoken = raw.posting(&ping).header("mcp-protocol-version", "2025-06-18").send().await?;
    assert_eq!(spoken.status(), 200);
    let text = raw.request(reqwest::Method::POST).body("{").header("content-type", "text/plain").send().await?;
    assert_eq!(text.status(), 415);
    let cut = raw.request(reqwest::Method::POST).body("{").header("content-type", "application/json").send().await?;
    assert_eq!((cut.status().as_u16(), cut.json::<Value>().await?["error"]["code"].as_i64()), (400, Some(-32_700)));
    Ok(())
}

#[tokio::test]
async fn only_posts_and_resumed_streams_are_served_to_agents_of_this_place() -> Result<()> {
    let world = World::new().await?;
    let raw = Raw::alone(&world, &world.instance("one").await?).await?;
    let get = raw.request(reqwest::Method::GET).send().await?;
    assert_eq!((get.status().as_u16(), get.headers()["allow"].to_str()?), (405, "POST"));
    assert_eq!(raw.request(reqwest::Method::DELETE).send().await?.status(), 405);
    assert_eq!(raw.coming_back("1").await?.status(), 404, "an id of somebody else");

    let ping = request("ping", &json!({}));
    assert_eq!(raw.posting(&ping).header("host", "evil.example").send().await?.status(), 403);
    assert_eq!(raw.posting(&ping).header("origin", "https://evil.example").send().await?.status(), 403);
    assert_eq!(raw.posting(&ping).header("origin", "http://localhost:5173").send().await?.status(), 200);
    let stranger = raw.posting(&ping).header("authorization", "Bearer aba_wrong").send().await?;
    assert_eq!(stranger.status(), 401, "of two tokens neither counts");
    Ok(())
}

#[tokio::test]
async fn malformed_questions_are_an_error_of_the_tool_that_names_every_fault() -> Result<()> {
    let world = World::new().await?;
    let raw = Raw::alone(&world, &world.instance("one").await?).await?;
    let option = json!({ "label": "only one" });
    let answer = raw
        .tool("ask_person", json!({ "questions": [{ "prompt": " " }, { "prompt": "b", "options": [option] }] }))
        .await?;
    assert_eq!(answer["result"]["isError"], true);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("/questions/0/prompt: ") && text.contains("/questions/1/options: "), "{text}");
    let unknown = raw.tool("ask_person", json!({ "questions": [{ "prompt": "a", "colour": "red" }] })).await?;
    assert_eq!(unknown["result"]["isError"], true);
    assert!(unknown["result"]["content"][0]["text"].as_str().unwrap_or_default().contains("colour"), "{unknown}");
    let missing = raw.tool("ask_person", json!({})).await?;
    assert_eq!(missing["result"]["isError"], true);
    assert!(world.view(raw.session, None).await?.bundles.is_empty(), "nothing was asked");
    Ok(())
}
