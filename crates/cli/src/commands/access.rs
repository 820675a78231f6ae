//! `offshoot user …`, `offshoot token …` and `offshoot audit`

use super::Session;
use crate::args::{
    AuditArgs, TokenCommand, TokenCreateArgs, UserAddArgs, UserCommand, UserSetArgs,
};
use crate::listing::{self, Column, Key, usual};
use crate::output::{Fields, or_dash, seconds, size, table};
use offshoot_api::{AddUser, Audit, CreateToken, Role, SetUser, Token, User};
use offshoot_types::Failure;

/// Runs one command of users.
pub fn user(session: &Session, command: UserCommand) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    match command {
        UserCommand::Add(args) => {
            let UserAddArgs { name, role, parents, vdbs, space } = args;
            let role = role.into();
            let request = AddUser { name, role, parents, vdbs_max: vdbs, space_bytes_max: space };
            output.print(&client.add_user(&request)?, user_text);
        }
        UserCommand::Set(UserSetArgs { name, change }) => {
            let request = SetUser {
                parents: Some(change.parents).filter(|parents| !parents.is_empty()),
                vdbs_max: change.vdbs.map(|choice| choice.0),
                space_bytes_max: change.space.map(|choice| choice.0),
            };
            output.print(&client.set_user(&name, &request)?, user_text);
        }
        UserCommand::List(args) => listing::print(
            output,
            client.list_users()?,
            |list| &mut list.users,
            (&args.list, USERS),
            |all| all.retain(|one| args.role.is_none_or(|role| one.role == Role::from(role))),
            "there is no user; add one with: offshoot user add",
        )?,
        UserCommand::Remove(args) => {
            let removed = client.remove_user(&args.name)?;
            output.print(&removed, |user| match user.vdbs {
                0 => format!("{} is removed", user.name),
                vdbs => format!(
                    "{} is removed; {} to the administrators now",
                    user.name,
                    if vdbs == 1 {
                        "its VDB belongs".to_owned()
                    } else {
                        format!("its {vdbs} VDBs belong")
                    }
                ),
            });
        }
    }
    Ok(())
}

fn limit(user: &User) -> String {
    user.vdbs_max.map_or(user.vdbs.to_string(), |most| format!("{} of {most}", user.vdbs))
}

fn space(user: &User) -> Option<String> {
    let most = user.space_bytes_max?;
    Some(format!("{} of {}", size(user.space_bytes.unwrap_or_default()), size(most)))
}

fn user_text(user: &User) -> String {
    let parents = Some(user.parents.join(", ")).filter(|names| !names.is_empty());
    Fields::default()
        .add("name", &user.name)
        .add("role", user.role.word())
        .add_some("parents", parents)
        .add("VDBs", limit(user))
        .add_some("space", space(user))
        .add("id", user.id)
        .add("created at", user.created_at)
        .text()
}

const USERS: &[Column<User>] = &[
    usual("user", |one| one.name.clone(), |one| Key::text(&one.name)),
    usual("role", |one| one.role.word().to_owned(), |one| Key::text(one.role.word())),
    usual("vdbs", limit, |one| Key::Number(one.vdbs)),
    usual("space", |one| or_dash(space(one)), |one| Key::number(one.space_bytes)),
    usual("parents", parents, |one| Key::text(parents(one))),
    usual("created-at", |one| seconds(one.created_at), |one| Key::Time(one.created_at)),
];

fn parents(user: &User) -> String {
    or_dash(Some(user.parents.join(",")).filter(|names| !names.is_empty()))
}

/// Runs one command of tokens.
pub fn token(session: &Session, command: TokenCommand) -> Result<(), Failure> {
    let (client, output) = (&session.client, session.output);
    match command {
        TokenCommand::Create(TokenCreateArgs { user, expires }) => {
            let made = client.create_token(&CreateToken { user, expires_in_ms: expires })?;
            if !output.json {
                let until = made.expires_at.map_or("it is revoked".to_owned(), seconds);
                eprintln!(
                    "{} of {}, good until {until}; it is not shown again",
                    made.id, made.user
                );
            }
            output.print(&made, |made| made.token.clone());
        }
        TokenCommand::List(args) => listing::print(
            output,
            client.list_tokens()?,
            |list| &mut list.tokens,
            (&args.list, TOKENS),
            |all| all.retain(|one| args.user.as_ref().is_none_or(|user| *user == one.user)),
            "there is no token; make one with: offshoot token create --user NAME",
        )?,
        TokenCommand::Revoke { id } => {
            let revoked = client.revoke_token(id)?;
            output.print(&revoked, |token| format!("{} of {} is revoked", token.id, token.user));
        }
    }
    Ok(())
}

const TOKENS: &[Column<Token>] = &[
    usual("token", |one| one.id.to_string(), |one| Key::Number(one.id.0)),
    usual("user", |one| one.user.clone(), |one| Key::text(&one.user)),
    usual("created-at", |one| seconds(one.created_at), |one| Key::Time(one.created_at)),
    usual("expires-at", end, |one| Key::time(one.expires_at)),
];

fn end(token: &Token) -> String {
    if token.expired { "expired".to_owned() } else { or_dash(token.expires_at.map(seconds)) }
}

/// Shows the audit.
pub fn audit(session: &Session, args: &AuditArgs) -> Result<(), Failure> {
    let since = args.since.map(|since| since.to_string());
    let audit = session.client.audit(since.as_deref(), args.user.as_deref(), args.limit)?;
    session.output.print(&audit, audit_text);
    Ok(())
}

fn audit_text(audit: &Audit) -> String {
    if audit.entries.is_empty() {
        return "nothing was asked for".to_owned();
    }
    let rows = audit.entries.iter().map(|one| {
        vec![
            seconds(one.time),
            one.user.clone(),
            one.action.clone(),
            or_dash(Some(one.object.clone()).filter(|name| !name.is_empty())),
            one.outcome.clone(),
            or_dash(one.job.map(|job| job.to_string())),
            one.origin.clone(),
        ]
    });
    table(&["time", "user", "action", "object", "outcome", "job", "from"], rows.collect())
}
