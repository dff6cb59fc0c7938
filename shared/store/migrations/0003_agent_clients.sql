-- Which client an agent token is used by.

alter table tokens add column client_name text
    constraint tokens_client_of_agent check (client_name is null or kind = 'agent');
comment on column tokens.client_name is 'What the MCP client that uses an agent token called itself last.';

update schema_info set version = 3;
