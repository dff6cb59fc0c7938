//! A person (or a back end that acts for one) and what they may do where.

use crate::problem::not_found;
use domain::ids::{TokenId, WorkspaceId};
use domain::object::{Actor, Role};
use std::collections::BTreeMap;
use store::Scope;
use wire::problem::{Code, Problem};

/// A person, by the token they showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    id: String,
    name: String,
    grants: Grants,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Grants {
    /// Admin of every workspace: the dev token and bootstrap tokens.
    Everywhere,
    /// A role in each of these.
    In(BTreeMap<WorkspaceId, Role>),
}

impl Person {
    /// Whoever holds an API token: they act with its role in its workspace, or, without one, as admin of every
    /// workspace.
    #[must_use]
    pub fn of_token(token: TokenId, name: String, role: Role, workspace: Option<WorkspaceId>) -> Self {
        let grants = workspace.map_or(Grants::Everywhere, |workspace| Grants::In([(workspace, role)].into()));
        Self { id: token.to_string(), name, grants }
    }

    /// What idempotency keys are scoped to and what is recorded as the creator: the token's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How they appear in answers and queues.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor { id: self.id.clone(), name: self.name.clone() }
    }

    /// Everything they may see.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match &self.grants {
            Grants::Everywhere => Scope::All,
            Grants::In(roles) => Scope::Workspaces(roles.keys().copied().collect()),
        }
    }

    /// Whether they are admin of every workspace, also of those yet to be made: only they make workspaces.
    #[must_use]
    pub const fn is_admin_everywhere(&self) -> bool {
        matches!(self.grants, Grants::Everywhere)
    }

    /// Their role in a workspace; `None` where they do not belong to it.
    #[must_use]
    pub fn role_in(&self, workspace: WorkspaceId) -> Option<Role> {
        match &self.grants {
            Grants::Everywhere => Some(Role::Admin),
            Grants::In(roles) => roles.get(&workspace).copied(),
        }
    }

    /// Checks that they may do in `workspace` what needs `role`.
    ///
    /// # Errors
    /// `not_found` where they do not belong to it (so that it looks as if it did not exist), `forbidden` where their
    /// role is too low.
    pub fn require(&self, workspace: WorkspaceId, role: Role) -> Result<(), Problem> {
        match self.role_in(workspace) {
            None => Err(not_found()),
            Some(held) if held < role => {
                Err(Problem::new(Code::Forbidden, format!("this needs the role {role}; yours is {held}")))
            }
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn workspace(id: u128) -> WorkspaceId {
        WorkspaceId(Uuid::from_u128(id))
    }

    fn person(role: Role, workspace: Option<WorkspaceId>) -> Person {
        Person::of_token(TokenId(Uuid::from_u128(9)), "ci".to_owned(), role, workspace)
    }

    #[test]
    fn a_token_acts_with_its_role_in_its_workspace_only() {
        let member = person(Role::Member, Some(workspace(1)));
        assert_eq!(member.require(workspace(1), Role::Member), Ok(()));
        let code = |id, role| member.require(workspace(id), role).expect_err("it may not").code();
        assert_eq!(code(1, Role::Operator), Code::Forbidden);
        assert_eq!(code(2, Role::Viewer), Code::NotFound);
        assert_eq!(member.scope(), Scope::Workspaces(vec![workspace(1)]));
        assert!(!member.is_admin_everywhere());
    }

    #[test]
    fn a_token_without_a_workspace_is_admin_everywhere() {
        let admin = person(Role::Admin, None);
        assert_eq!(admin.require(workspace(7), Role::Admin), Ok(()));
        assert_eq!((admin.scope(), admin.is_admin_everywhere()), (Scope::All, true));
    }
}
