//! Lists, pages and scopes: what lies outside a scope looks as if it did not exist.

use crate::common::{GRACE, World, connect, id, new_session, new_task, refused, write};
use anyhow::{Context as _, Result};
use domain::ids::{SessionId, TaskId, TokenId, WorkspaceId};
use domain::object::{Role, RuntimeKind, TaskState};
use domain::session::Rejection;
use domain::session::decide::{Begin, DeleteSession, Frame, Frames, NewSession};
use domain::session::view::Needs;
use store::{
    IdempotencyKey, InboxFilter, MessagePlace, NewAgentToken, NewToken, PageArgs, PrincipalKind, SchemaFit, Scope,
    SessionExtras, Store, StoreError, StoreOptions, TaskPatch, TransactError, WriteError,
};

const PAGE: PageArgs = PageArgs { limit: 50, after: None };

fn key(path: &str) -> IdempotencyKey {
    IdempotencyKey {
        principal: "ada".to_owned(),
        method: "POST".to_owned(),
        path: path.to_owned(),
        key: "k".to_owned(),
        body_hash: [1; 32],
    }
}

#[tokio::test]
async fn a_foreign_workspace_shows_nothing() -> Result<()> {
    let (world, execution) = World::running().await?;
    let asked = world.ask(Some(execution), "Deploy?").await?;
    let store = &world.store;
    let foreign: WorkspaceId = id();
    store.create_workspace(foreign, "Theirs", "bob", None).await?;
    let ours = Scope::Workspaces(vec![world.workspace]);
    for (scope, seen) in
        [(Scope::Workspaces(vec![foreign]), 0), (Scope::Workspaces(vec![]), 0), (ours, 1), (Scope::All, 1)]
    {
        let all = store.inbox(&scope, InboxFilter::All, PAGE).await?.items.len();
        let counts = [
            store.tasks(&scope, PAGE).await?.items.len(),
            store.task(&scope, world.task).await?.iter().len(),
            store.sessions_of_task(&scope, world.task).await?.len(),
            store.view(&scope, world.session, &Needs::default()).await?.iter().len(),
            store.views(&scope, &[world.session], &[]).await?.len(),
            store.place_of_session(&scope, world.session).await?.iter().len(),
            store.session_of_bundle(&scope, asked.pending_id).await?.iter().len(),
            store.session_of_turn(&scope, asked.turn_id).await?.iter().len(),
            store.inbox(&scope, InboxFilter::Open, PAGE).await?.items.len(),
            all,
            store.workspace(&scope, world.workspace).await?.iter().len(),
        ];
        assert_eq!(counts, [seen; 11], "{scope:?}");
    }
    let theirs = Scope::Workspaces(vec![foreign]);
    let patched = store.patch_task(&theirs, world.task, &TaskPatch::default(), write()).await;
    assert!(matches!(patched, Err(WriteError::NotFound)));
    let mut stranger = NewSession {
        id: id(),
        task_id: world.task,
        workspace_id: foreign,
        agent: "mailbox".to_owned(),
        runtime: RuntimeKind::Mailbox,
    };
    let begin = Begin { prompt: None, grace: GRACE, traceparent: None };
    let extras = || SessionExtras { agent_token: None, key: None, ids: crate::common::ids() };
    assert_eq!(refused(store.create_session(stranger.clone(), &begin, extras()).await)?, Rejection::NotFound);
    stranger.workspace_id = world.workspace;
    store.create_session(stranger, &begin, extras()).await?;
    Ok(())
}

#[tokio::test]
async fn pages_join_without_gap_or_overlap() -> Result<()> {
    let world = World::new().await?;
    let (store, scope) = (&world.store, Scope::Workspaces(vec![world.workspace]));
    let mut made = vec![world.task];
    for n in 0..10 {
        made.push(new_task(store, world.workspace, &format!("task {n}")).await?);
    }
    for scope in [scope, Scope::All] {
        let (mut seen, mut after): (Vec<TaskId>, _) = (Vec::new(), None);
        loop {
            let page = store.tasks(&scope, PageArgs { limit: 3, after }).await?;
            seen.extend(page.items.iter().map(|task| task.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, made);
    }
    Ok(())
}

#[tokio::test]
async fn the_inbox_pages_through_open_bundles_only() -> Result<()> {
    let (world, execution) = World::running().await?;
    let mut asked = Vec::new();
    for n in 0..7 {
        asked.push(world.ask(Some(execution), &format!("Question {n}?")).await?.pending_id);
    }
    let (claim, _) = world.claim(asked[2]).await?;
    world.confirm(claim).await?;
    let open: Vec<_> = asked.iter().copied().filter(|pending| *pending != asked[2]).collect();
    for (filter, expected) in [(InboxFilter::Open, &open), (InboxFilter::All, &asked)] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = world.store.inbox(&Scope::All, filter, PageArgs { limit: 2, after }).await?;
            seen.extend(page.items.iter().map(|bundle| bundle.pending_id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(&seen, expected);
    }
    Ok(())
}

#[tokio::test]
async fn messages_are_read_forward_backward_and_between() -> Result<()> {
    let (world, execution) = World::running().await?;
    let text = |n: usize| Frame::Text {
        kind: domain::object::MessageType::Message,
        text: n.to_string(),
        key: None,
        delta: false,
    };
    let frames = Frames {
        epoch: world.epoch,
        execution_id: execution,
        generation: 1,
        first_seq: 1,
        frames: (0..9).map(text).collect(),
        released: vec![],
        grace: GRACE,
    };
    world.give(&frames).await?;
    world.run("update messages set content = '', deleted_at = now() where position = 5").await?;
    let read = async |after, before, limit| {
        let (messages, more) = world.store.messages(world.session, MessagePlace { after, before }, limit).await?;
        anyhow::Ok((messages.iter().map(|message| message.position).collect::<Vec<_>>(), more))
    };
    assert_eq!(read(None, None, 3).await?, (vec![1, 2, 3], true));
    assert_eq!(read(Some(3), None, 3).await?, (vec![4, 6, 7], true));
    assert_eq!(read(Some(7), None, 5).await?, (vec![8, 9, 10], false));
    assert_eq!(read(None, Some(8), 3).await?, (vec![4, 6, 7], true));
    assert_eq!(read(None, Some(3), 3).await?, (vec![1, 2], false));
    assert_eq!(read(Some(2), Some(7), 9).await?, (vec![3, 4, 6], false));
    let (turns, total) = world.store.turns(world.session, PAGE).await?;
    assert_eq!((turns.items.len(), total), (1, 1));
    let place = turns.items.first().map(|turn| store::Keyset { at: turn.started_at, id: turn.id.0 });
    assert!(world.store.turns(world.session, PageArgs { limit: 1, after: place }).await?.0.items.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_token_is_worth_something_until_it_is_revoked_expires_or_loses_its_session() -> Result<()> {
    let world = World::new().await?;
    let (store, scope) = (&world.store, Scope::Workspaces(vec![world.workspace]));
    let new = |hash: u8, workspace| NewToken {
        id: id(),
        name: "ci",
        hash: [hash; 32],
        workspace,
        role: if workspace.is_some() { Role::Member } else { Role::Admin },
        expires_at: None,
        created_by: "ada",
    };
    let admin = store.create_token(new(1, None), None).await?;
    let member = store.create_token(new(2, Some(world.workspace)), Some(&key("/tokens"))).await?;
    assert!(matches!(
        store.create_token(new(3, Some(world.workspace)), Some(&key("/tokens"))).await,
        Err(WriteError::KeyHeld)
    ));
    assert!(matches!(store.create_token(new(4, Some(id())), None).await, Err(WriteError::NotFound)));
    let who = async |hash: u8| anyhow::Ok(store.principal_by_hash(&[hash; 32]).await?.map(|found| found.kind));
    assert_eq!(who(1).await?, Some(PrincipalKind::Person { role: Role::Admin, workspace: None }));
    let person = PrincipalKind::Person { role: Role::Member, workspace: Some(world.workspace) };
    assert_eq!(who(2).await?, Some(person));
    assert_eq!(who(3).await?, None);
    assert_eq!(store.tokens(&scope, PAGE).await?.items, std::slice::from_ref(&member));
    assert_eq!(store.tokens(&Scope::All, PAGE).await?.items, [admin.clone(), member.clone()]);
    assert!(matches!(store.revoke_token(&scope, admin.id, None).await, Err(WriteError::NotFound)));
    store.revoke_token(&scope, member.id, None).await?;
    let revoked = store.token(&scope, member.id).await?.context("it is still listed")?.revoked_at;
    store.revoke_token(&scope, member.id, None).await?;
    assert_eq!(store.token(&scope, member.id).await?.context("it is still listed")?.revoked_at, revoked);
    assert_eq!(who(2).await?, None);
    world.run("update tokens set expires_at = now() where workspace_id is null").await?;
    assert_eq!(who(1).await?, None);

    let agent = |hash: u8| NewAgentToken { id: id::<TokenId>(), hash: [hash; 32], created_by: "ada" };
    let bound = PrincipalKind::Agent { session: world.session, task: world.task, workspace: world.workspace };
    store.create_agent_token(&scope, world.session, agent(5), false, None).await?;
    store.create_agent_token(&scope, world.session, agent(6), true, None).await?;
    assert_eq!((who(5).await?, who(6).await?), (Some(bound), Some(bound)));
    let temporary = agent(7);
    store.create_agent_token(&scope, world.session, temporary, false, None).await?;
    assert_eq!((who(5).await?, who(6).await?, who(7).await?), (None, None, Some(bound)));
    store.revoke_agent_token(world.session, temporary.id).await?;
    assert_eq!(who(7).await?, None);
    let foreign = Scope::Workspaces(vec![id()]);
    let made = store.create_agent_token(&foreign, world.session, agent(8), false, None).await;
    assert!(matches!(made, Err(WriteError::NotFound)));
    store.create_agent_token(&scope, world.session, agent(9), false, None).await?;
    world.give(&DeleteSession { grace: GRACE }).await?;
    assert_eq!(who(9).await?, None);
    Ok(())
}

#[tokio::test]
async fn members_come_change_and_go() -> Result<()> {
    let world = World::new().await?;
    let (store, workspace) = (&world.store, world.workspace);
    assert_eq!(store.memberships("ada").await?, [(workspace, Role::Admin)], "a creator is admin");
    store.put_member(workspace, "bob", Role::Viewer, None).await?;
    let changed = store.put_member(workspace, "bob", Role::Operator, None).await?;
    assert_eq!(store.members(workspace).await?.last(), Some(&changed));
    assert!(matches!(store.put_member(id(), "bob", Role::Viewer, None).await, Err(WriteError::NotFound)));
    store.delete_member(workspace, "bob", None).await?;
    let again = store.delete_member(workspace, "bob", Some(&key("/members/bob"))).await;
    assert!(matches!(again, Err(WriteError::NotFound)));
    assert_eq!(store.held(&key("/members/bob")).await?, None, "what was not accepted holds no key");
    assert_eq!(store.memberships("bob").await?, []);
    Ok(())
}

#[tokio::test]
async fn a_task_is_edited_and_deleted_after_its_sessions() -> Result<()> {
    let world = World::new().await?;
    let (store, scope) = (&world.store, Scope::Workspaces(vec![world.workspace]));
    let elsewhere = new_task(store, world.workspace, "Other").await?;
    let other: SessionId = new_session(store, world.workspace, elsewhere, None).await?;
    let patch = TaskPatch { primary_session: Some(other), ..TaskPatch::default() };
    assert!(matches!(store.patch_task(&scope, world.task, &patch, write()).await, Err(WriteError::Conflict(_))));
    let patch = TaskPatch { state: Some(TaskState::Done), title: Some("New".to_owned()), ..TaskPatch::default() };
    let patched = store.patch_task(&scope, world.task, &patch, write()).await?;
    assert_eq!(
        (patched.state, patched.title.as_str(), patched.primary_session_id),
        (TaskState::Done, "New", Some(world.session))
    );
    let same = store.patch_task(&scope, world.task, &patch, write()).await?;
    assert_eq!(same.updated_at, patched.updated_at, "nothing is different, nothing is told");
    assert!(matches!(store.delete_task(&scope, world.task, write()).await, Err(WriteError::Conflict(_))));
    world.give(&DeleteSession { grace: GRACE }).await?;
    store.delete_task(&scope, world.task, write()).await?;
    assert_eq!(store.task(&scope, world.task).await?, None);
    assert!(matches!(store.delete_task(&scope, world.task, write()).await, Err(WriteError::NotFound)));
    assert_eq!(refused(world.give(&DeleteSession { grace: GRACE }).await)?, Rejection::NotFound);
    let mut connection = connect(world.database.url()).await?;
    let told: Vec<String> =
        sqlx::query_scalar("select type from events where task_id = $1 and session_id is null order by stamp")
            .bind(world.task.0)
            .fetch_all(&mut connection)
            .await?;
    let (first, last) = (told.first().context("something was told")?, told.last().context("something was told")?);
    assert_eq!((first.as_str(), last.as_str()), ("task.created", "task.deleted"));
    assert_eq!(world.violations().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_repeated_creation_is_told_to_replay() -> Result<()> {
    let world = World::new().await?;
    let new = NewSession {
        id: id(),
        task_id: world.task,
        workspace_id: world.workspace,
        agent: "mailbox".to_owned(),
        runtime: RuntimeKind::Mailbox,
    };
    let begin = Begin { prompt: None, grace: GRACE, traceparent: Some("00-1-2-01".to_owned()) };
    let key = key("/sessions");
    let extras = || SessionExtras {
        agent_token: Some(NewAgentToken { id: id(), hash: any_hash(), created_by: "ada" }),
        key: Some(&key),
        ids: crate::common::ids(),
    };
    world.store.create_session(new.clone(), &begin, extras()).await?;
    let again = NewSession { id: id(), ..new.clone() };
    let repeated = world.store.create_session(again, &begin, extras()).await;
    assert!(matches!(repeated, Err(TransactError::KeyHeld)));
    let held = world.store.held(&key).await?.context("the key is held")?;
    assert_eq!(held.subject, serde_json::json!({ "session_id": new.id }));
    assert_eq!(
        world.store.sessions_of_tasks(&[world.task]).await?,
        [(world.task, world.session), (world.task, new.id)]
    );
    Ok(())
}

/// A hash no other token has.
fn any_hash() -> [u8; 32] {
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(id::<uuid::Uuid>().as_bytes());
    hash
}

#[tokio::test]
async fn a_binary_refuses_a_schema_that_does_not_fit() -> Result<()> {
    let world = World::new().await?;
    let connect = async || Store::connect(world.database.url(), StoreOptions::default()).await;
    assert!(matches!(world.store.schema_fit().await?, SchemaFit::Fits { .. }));
    world.run("update schema_info set version = version + 5").await?;
    connect().await.context("a newer schema that still serves this binary fits")?;
    world.run("update schema_info set min_compatible = version").await?;
    assert!(matches!(connect().await, Err(StoreError::Schema(_))));
    assert!(matches!(world.store.schema_fit().await?, SchemaFit::TooNew { .. }));
    world.run("update schema_info set min_compatible = 0, version = 0").await?;
    assert!(matches!(connect().await, Err(StoreError::Schema(_))));
    world.run("drop table schema_info").await?;
    assert!(matches!(world.store.schema_fit().await?, SchemaFit::TooOld { version: 0 }));
    Ok(())
}
