"""Objects of KAI."""
