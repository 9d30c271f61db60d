{% snapshot country_history %}
{{ config(unique_key='id', strategy='check', check_cols=['country'], file_format='delta', hard_deletes='invalidate') }}
select id, country from {{ source('raw', 'customers') }}
{% endsnapshot %}
