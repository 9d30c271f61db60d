select id, name, country, updated_at from {{ source('raw', 'customers') }}
